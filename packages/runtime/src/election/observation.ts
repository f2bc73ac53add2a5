import type { Lease } from '../kind/builtin/lease.ts';
import { holderOf } from './record.ts';

export interface ObservationOptions {
  /** Whose record may be written anew at once: our own. */
  readonly identity: string;
  /** For a record that does not say how long it is valid. */
  readonly leaseMs: number;
}

/**
 * What a candidate has seen of the lease, and since when on its own monotonic clock.
 *
 * A holder's time runs from a request that it sent before the server stored the record, which was before we could see
 * it. So once we have seen a record unchanged for its whole duration, its holder has stopped, whatever the clocks of
 * other machines say.
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

  /** @param now on the monotonic clock, when the answer was here */
  observe(lease: Lease | undefined, now: number): void {
    // Somebody has deleted it. That stops no leader, so what we knew of its time holds on.
    if (lease === undefined) return;
    // Any change counts, also one by who knows whom: to wait once more is safe, to wait too little is not.
    const { resourceVersion } = lease.metadata;
    if (resourceVersion !== undefined && resourceVersion === this.#version) return;
    const { identity, leaseMs } = this.#options;
    const { spec } = lease;
    const seconds = spec?.leaseDurationSeconds;
    this.#version = resourceVersion;
    this.#holder = holderOf(spec);
    const free = this.#holder === undefined || this.#holder === identity;
    this.#freeAt = free ? now : now + (seconds === undefined ? leaseMs : seconds * 1_000);
  }

  /** In how many milliseconds the lease may be taken, if it stays as it is. */
  freeIn(now: number): number {
    return Math.max(this.#freeAt - now, 0);
  }
}
