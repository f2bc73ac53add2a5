import type { World } from '@vmwright/core';
import { keyOf } from '../kind/object.ts';
import { ElectionOptionsError } from './errors.ts';
import type { LeaseClient } from './lease-lock.ts';

/** Told of what happens, for metrics and logs. */
export interface ElectionObserver {
  /** Whether this one leads: `leader_election_master_status`. Told once at the start, then at each change. */
  leading(is: boolean, leaseName: string): void;
  /** Who holds the lease by the last look at it; undefined for nobody. */
  holder?(identity: string | undefined): void;
  /** A try to take, renew or release the lease has failed; there will be others. */
  failed?(error: unknown): void;
}

export interface LeaderElectionOptions {
  readonly world: Pick<World, 'now' | 'monotonic' | 'after' | 'random' | 'uuid'>;
  /** Needs the verbs get, create and patch on the lease. */
  readonly client: LeaseClient;
  /** The lease that all candidates compete for. Created by the first. */
  readonly lease: { readonly namespace: string; readonly name: string };
  /**
   * Who this is, for people: the pod's name. An id of this process is added, so that it is taken neither for what ran
   * under the name before it nor for a sibling that was configured alike.
   */
  readonly identity: string;
  /** How long the others leave a silent leader alone. Whole seconds, as the API has it. @default 15_000 */
  readonly leaseMs?: number;
  /** How long a leader acts after the start of its last successful renewal. @default 10_000 */
  readonly renewMs?: number;
  /** Between two looks at the lease, or two renewals; give or take a quarter. @default 2_000 */
  readonly retryMs?: number;
  /** Put on the lease when it is created. */
  readonly labels?: Readonly<Record<string, string>>;
  /**
   * What a leader does whose lease somebody has deleted: create it anew and go on, or take the lead for lost (and
   * stand again). The latter where others may conclude from a missing lease that nobody leads. @default 'create'
   */
  readonly whenDeleted?: 'create' | 'lose';
  readonly observer?: ElectionObserver;
}

/** The times of an election, checked. */
export interface ElectionTimings {
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly retryMs: number;
  /** For one call: short enough for a second try before a leader's time is up. */
  readonly callMs: number;
}

export function timingsOf(
  options: Pick<LeaderElectionOptions, 'lease' | 'leaseMs' | 'renewMs' | 'retryMs'>,
): ElectionTimings {
  const { lease, leaseMs = 15_000, renewMs = 10_000, retryMs = 2_000 } = options;
  const refuse = (why: string) => new ElectionOptionsError(`election by lease ${keyOf(lease)}: ${why}`);
  if (leaseMs < 1_000 || leaseMs % 1_000 !== 0) throw refuse(`leaseMs (${leaseMs}) is not in whole seconds`);
  // The difference is all the time that a leader has to stop in, and covers clocks that run at different speeds.
  if (renewMs >= leaseMs) throw refuse(`renewMs (${renewMs}) is not below leaseMs (${leaseMs})`);
  if (retryMs <= 0 || renewMs < 2 * retryMs)
    throw refuse(`renewMs (${renewMs}) leaves no time for two tries, retryMs (${retryMs}) apart`);
  return { leaseMs, renewMs, retryMs, callMs: renewMs / 2 };
}
