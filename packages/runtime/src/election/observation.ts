import type { Lease } from '../kind/builtin/lease.ts';
import { holderOf } from './record.ts';

export interface ObservationOptions {
  /** Identity of this process; a lease that it holds counts as free. */
  readonly identity: string;
  /** Lease duration to assume for a record that states none, in milliseconds. */
  readonly leaseMs: number;
}

/**
 * The lease as a candidate last observed it, with the time from which the candidate may acquire it. That time is
 * measured on the candidate's own monotonic clock.
 *
 * A holder's term starts when the holder sends its request, so before any candidate can read the record. Once a
 * candidate has seen the record unchanged for its whole lease duration, the holder's term has ended. The clocks of
 * other machines do not matter.
 */
export class Observation {
  readonly #options: ObservationOptions;
  #version: string | undefined;
  #freeAt = Number.NEGATIVE_INFINITY;
  #holder: string | undefined;

  constructor(options: ObservationOptions) {
    this.#options = options;
  }

  get holder(): string | undefined {
    return this.#holder;
  }

  /** Records a read of the lease. @param now monotonic time at which the response arrived */
  observe(lease: Lease | undefined, now: number): void {
    // A deleted Lease does not stop its leader, so the observed expiry remains valid.
    if (lease === undefined) return;
    // Any change restarts the wait, even one by another program: waiting too long is safe, waiting too briefly is not.
    const { resourceVersion } = lease.metadata;
    if (resourceVersion !== undefined && resourceVersion === this.#version) return;
    const { identity, leaseMs } = this.#options;
    const { spec } = lease;
    const seconds = spec?.leaseDurationSeconds;
    this.#version = resourceVersion;
    this.#holder = holderOf(spec);
    const isFree = this.#holder === undefined || this.#holder === identity;
    this.#freeAt = isFree ? now : now + (seconds === undefined ? leaseMs : seconds * 1_000);
  }

  /** Returns the milliseconds until the lease may be acquired if it does not change. */
  freeIn(now: number): number {
    return Math.max(this.#freeAt - now, 0);
  }
}
