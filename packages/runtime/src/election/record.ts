import type { LeaseSpec } from '../kind/builtin/lease.ts';
import { microTime } from '../kind/time.ts';

/*
 * The record in a Lease has the same fields as in client-go, so that kubectl and other tools can read it. Candidates
 * ignore its times, because they come from the clocks of other machines.
 */

export interface Claim {
  readonly identity: string;
  readonly leaseMs: number;
  /** Wall-clock time of this machine, in milliseconds since 1970. */
  readonly now: number;
}

/** Returns the record that acquires or renews the lease. */
export function claimRecord(before: LeaseSpec | undefined, { identity, leaseMs, now }: Claim): LeaseSpec {
  const renewTime = renewalAt(now, before?.renewTime);
  const isRenewal = before?.holderIdentity === identity;
  const transitions = before?.leaseTransitions ?? 0;
  return {
    holderIdentity: identity,
    leaseDurationSeconds: leaseMs / 1_000,
    acquireTime: isRenewal ? (before.acquireTime ?? renewTime) : renewTime,
    renewTime,
    leaseTransitions: before === undefined || isRenewal ? transitions : transitions + 1,
  };
}

/** Returns the record that releases the lease, so that another candidate can acquire it immediately. */
export function releaseRecord(before: LeaseSpec, now: number): LeaseSpec {
  const renewTime = renewalAt(now, before.renewTime);
  return {
    ...before,
    holderIdentity: null, // null removes the field in a merge patch
    leaseDurationSeconds: 1,
    acquireTime: renewTime,
    renewTime,
  };
}

/** Returns the holder's identity; undefined if the lease is free. */
export function holderOf(spec: LeaseSpec | undefined): string | undefined {
  return spec?.holderIdentity || undefined;
}

/**
 * Returns a renewTime that differs from the previous one, even if the clock stands still. A write that changes nothing
 * would keep the resource version, and other candidates would not see the renewal.
 */
export function renewalAt(now: number, before: string | undefined): string {
  const time = microTime(now);
  return time === before ? microTime(now + 0.001) : time;
}
