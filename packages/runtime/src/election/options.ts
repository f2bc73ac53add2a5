import type { World } from '@vmwright/core';
import { keyOf } from '../kind/object.ts';
import { ElectionOptionsError } from './errors.ts';
import type { LeaseClient } from './lease-lock.ts';

/** Observes an election, for metrics and logs. */
export interface ElectionObserver {
  /** Called at the start, and whenever this process starts or stops leading (`leader_election_master_status`). */
  leading(isLeading: boolean, leaseName: string): void;
  /** Called when the observed holder of the lease changes, with undefined if the lease is free. */
  holder?(identity: string | undefined): void;
  /**
   * Called when an attempt to acquire, renew or release the lease fails. The election retries, except after a failed
   * release.
   */
  failed?(error: unknown): void;
}

/** Options of a leader election. */
export interface LeaderElectionOptions {
  readonly world: Pick<World, 'now' | 'monotonic' | 'after' | 'random' | 'uuid'>;
  /** Client that may get, create and patch the Lease. */
  readonly client: LeaseClient;
  /** The Lease that all candidates compete for. The first candidate creates it. */
  readonly lease: { readonly namespace: string; readonly name: string };
  /**
   * Readable part of the holder identity: the pod's name. The election appends a unique id, because an earlier process
   * or another replica may use the same name.
   */
  readonly identity: string;
  /**
   * Milliseconds for which candidates wait after they have seen a renewal, before they acquire the lease. A multiple of
   * 1,000, because the Lease stores whole seconds.
   * @default 15_000
   */
  readonly leaseMs?: number;
  /** Milliseconds for which a leader acts after the start of its last successful renewal. @default 10_000 */
  readonly renewMs?: number;
  /** Milliseconds between two reads by a candidate, and between two renewals, with 25 % jitter. @default 2_000 */
  readonly retryMs?: number;
  /** Labels that the Lease gets when this process creates it. */
  readonly labels?: Readonly<Record<string, string>>;
  /**
   * Reaction of a leader to the deletion of its Lease.
   * - `create`: create the Lease again and continue to lead.
   * - `lose`: give up leadership and compete again. Use it if other processes take a missing Lease as a sign that there
   *   is no leader.
   *
   * @default 'create'
   */
  readonly whenDeleted?: 'create' | 'lose';
  readonly observer?: ElectionObserver;
}

/** Validated durations of an election, in milliseconds. */
export interface ElectionTimings {
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly retryMs: number;
  /** Timeout of one read or write of the Lease: short enough for a second attempt before the leadership term ends. */
  readonly callMs: number;
}

/** Fills in the defaults and validates the durations. @throws ElectionOptionsError */
export function timingsOf(
  options: Pick<LeaderElectionOptions, 'lease' | 'leaseMs' | 'renewMs' | 'retryMs'>,
): ElectionTimings {
  const { lease, leaseMs = 15_000, renewMs = 10_000, retryMs = 2_000 } = options;
  const invalid = (why: string) => new ElectionOptionsError(`election with lease ${keyOf(lease)}: ${why}`);
  if (leaseMs < 1_000 || leaseMs % 1_000 !== 0)
    throw invalid(`leaseMs (${leaseMs}) must be a positive multiple of 1000 milliseconds`);
  // `leaseMs - renewMs` is the time in which a leader must stop. It also covers clocks that run at different speeds.
  if (renewMs >= leaseMs) throw invalid(`renewMs (${renewMs}) must be less than leaseMs (${leaseMs})`);
  if (retryMs <= 0 || renewMs < 2 * retryMs)
    throw invalid(`renewMs (${renewMs}) must be at least twice retryMs (${retryMs}), which must be positive`);
  return { leaseMs, renewMs, retryMs, callMs: renewMs / 2 };
}
