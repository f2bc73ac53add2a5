import type { BackoffOptions } from '@vmwright/core';

interface Failing {
  failures: number;
  /** The moment of the retry that the last counted failure has asked for. */
  retryAt: number;
}

/**
 * Remembers who keeps failing. A key that an unrelated event wakes before its time, and that fails again, is not one
 * failure further: it waits for the retry it already had. Otherwise every such event would double the delay, and a
 * busy object would back off to the limit in no time (kubernetes#132805).
 */
export class Backoff {
  readonly #baseMs: number;
  readonly #maxMs: number;
  readonly #failing = new Map<string, Failing>();

  constructor({ baseMs = 5, maxMs = 1_000_000 }: Partial<BackoffOptions> = {}) {
    this.#baseMs = baseMs;
    this.#maxMs = maxMs;
  }

  /** Notes a failure and tells the moment of the next try. */
  failed(key: string, now: number): number {
    const known = this.#failing.get(key);
    if (known === undefined) {
      const retryAt = now + this.#baseMs;
      this.#failing.set(key, { failures: 1, retryAt });
      return retryAt;
    }
    if (now < known.retryAt) return known.retryAt;
    known.retryAt = now + Math.min(this.#baseMs * 2 ** known.failures, this.#maxMs);
    known.failures += 1;
    return known.retryAt;
  }

  succeeded(key: string): void {
    this.#failing.delete(key);
  }

  failures(key: string): number {
    return this.#failing.get(key)?.failures ?? 0;
  }
}
