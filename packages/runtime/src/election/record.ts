import type { LeaseSpec } from '../kind/builtin/lease.ts';
import { microTime } from '../kind/time.ts';

/*
 * What is written into a lease, field by field as client-go does, so that kubectl and other tools understand it. The
 * times in it are for people: no candidate decides by them, since they come from other machines' clocks.
 */

export interface Claim {
  readonly identity: string;
  readonly leaseMs: number;
  /** By this machine's clock, in milliseconds since 1970. */
  readonly now: number;
}

/** The record of one who takes the lease or keeps it. */
export function claimRecord(before: LeaseSpec | undefined, { identity, leaseMs, now }: Claim): LeaseSpec {
  const renewTime = renewalAt(now, before?.renewTime);
  const kept = before?.holderIdentity === identity;
  const transitions = before?.leaseTransitions ?? 0;
  return {
    holderIdentity: identity,
    leaseDurationSeconds: leaseMs / 1_000,
    acquireTime: kept ? (before.acquireTime ?? renewTime) : renewTime,
    renewTime,
    leaseTransitions: before === undefined || kept ? transitions : transitions + 1,
  };
}

/** The record of one who has stopped, and lets the next start at once. */
export function releaseRecord(before: LeaseSpec, now: number): LeaseSpec {
  const renewTime = renewalAt(now, before.renewTime);
  return {
    ...before,
    holderIdentity: null, // in a merge patch: removes the field
    leaseDurationSeconds: 1,
    acquireTime: renewTime,
    renewTime,
  };
}

export function holderOf(spec: LeaseSpec | undefined): string | undefined {
  return spec?.holderIdentity || undefined;
}

/**
 * Differs from the one before even when the clock stands still: a write that changes nothing leaves the resource
 * version as it is, and to the others the holder would look silent.
 */
export function renewalAt(now: number, before: string | undefined): string {
  const time = microTime(now);
  return time === before ? microTime(now + 0.001) : time;
}
