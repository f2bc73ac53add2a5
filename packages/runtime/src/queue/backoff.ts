import { type BackoffOptions, exponentialMs } from '@vmwright/core';

interface Failing {
  failures: number;
  /** Time of the retry that the last counted failure scheduled. */
  retryAt: number;
}

/**
 * Exponential back-off per key. An unrelated event can enqueue a failed key before its scheduled retry. If the key then
 * fails again, its delay does not grow and it keeps the scheduled retry. Otherwise every such event would double the
 * delay, and a busy object would quickly reach the maximum (kubernetes#132805).
 */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #failing = new Map<string, Failing>();

  constructor({ baseMs = 5, maxMs = 1_000_000 }: Partial<BackoffOptions> = {}) {
    this.#options = { baseMs, maxMs };
  }

  /** Records a failure and returns the time of the next attempt. */
  failed(key: string, now: number): number {
    const known = this.#failing.get(key);
    if (known === undefined) {
      const retryAt = now + this.#options.baseMs;
      this.#failing.set(key, { failures: 1, retryAt });
      return retryAt;
    }
    if (now < known.retryAt) return known.retryAt;
    known.retryAt = now + exponentialMs(known.failures + 1, this.#options);
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
