import type { Timer, World } from '@vmwright/core';

/** Permission to run one operation on a backend. The holder must release it. */
export interface Permit extends Disposable {
  /** Gives the permit back. Calls after the first do nothing. */
  release(): void;
}

export interface FairLimiterOptions {
  readonly world: Pick<World, 'after'>;
  /** Maximum number of permits at a time. */
  readonly limit: number;
  /**
   * Called with a waiting key when a permit is reserved for it. The caller then has 5 s to call `acquire` for the key
   * again.
   */
  readonly onAvailable: (key: string) => void;
}

/** Time for which a permit stays reserved for a key that does not acquire it. */
const RESERVED_MS = 5_000;

/**
 * Limits how many operations run at a time, and shares the permits fairly between keys.
 *
 * Guarantees: at most `limit` permits are held or reserved, unless `adopt` exceeds the limit. Waiting keys get permits
 * in the order in which they began to wait. A key that got a permit and wants another one queues behind the others. So
 * while a key waits, every other key gets at most one permit.
 */
export class FairLimiter {
  readonly #options: FairLimiterOptions;
  readonly #waiting = new Set<string>();
  /** Keys with a reserved permit, and the timers that end the reservations. */
  readonly #reserved = new Map<string, Timer>();
  #held = 0;

  constructor(options: FairLimiterOptions) {
    this.#options = options;
  }

  /**
   * Returns a permit. If none is free, returns undefined; `onAvailable` is called later, when a permit is reserved for
   * the key.
   */
  acquire(key: string): Permit | undefined {
    const reservation = this.#reserved.get(key);
    if (reservation !== undefined) {
      reservation.cancel();
      this.#reserved.delete(key);
      return this.#issue();
    }
    if (this.#free > 0 && this.#waiting.size === 0) return this.#issue();
    this.#waiting.add(key);
    this.#reserve();
    return undefined;
  }

  /** Returns a permit for an operation that already runs, even if this exceeds the limit. */
  adopt(): Permit {
    return this.#issue();
  }

  /** Removes a waiting key, and gives up the permit that is reserved for it. */
  cancel(key: string): void {
    this.#waiting.delete(key);
    this.#reserved.get(key)?.cancel();
    if (this.#reserved.delete(key)) this.#reserve();
  }

  get #free(): number {
    return this.#options.limit - this.#held - this.#reserved.size;
  }

  #issue(): Permit {
    this.#held += 1;
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      this.#held -= 1;
      this.#reserve();
    };
    return { release, [Symbol.dispose]: release };
  }

  /** Reserves free permits for the keys that have waited longest. */
  #reserve(): void {
    const { world, onAvailable } = this.#options;
    for (const key of this.#waiting) {
      if (this.#free <= 0) return;
      this.#waiting.delete(key);
      this.#reserved.set(
        key,
        world.after(RESERVED_MS, () => this.cancel(key)),
      );
      onAvailable(key);
    }
  }
}
