import type { WorkQueue } from '@vmwright/runtime';
import type { Findings } from './findings.ts';
import type { Life } from './life.ts';

export const BACKOFF = { baseMs: 500, maxMs: 16_000 };
/** Timers that are late, and the time that the process of a try itself takes. */
const LATE_MS = 600;

interface Failing {
  failures: number;
  retryAt: number;
  lastAt: number;
}

/**
 * A failing object's back-off, as it is promised, beside the queue's own: it grows by the object's own failures alone. One
 * that an event wakes early, and that fails again, is no failure further.
 */
export class Retries {
  readonly #findings: Findings;
  readonly #life: Life;
  readonly #queue: WorkQueue;
  readonly #failing = new Map<string, Failing>();

  constructor(life: Life, queue: WorkQueue, findings: Findings) {
    this.#life = life;
    this.#queue = queue;
    this.#findings = findings;
  }

  tries(key: string): void {
    const { failures = 0, retryAt = 0, lastAt = 0 } = this.#failing.get(key) ?? {};
    const told = this.#queue.failures(key);
    const { name, world, simulated, disturbedAt } = this.#life;
    if (told !== failures)
      this.#findings.add(
        'back-off',
        `${key} has failed ${failures} times, the queue of ${name} says ${told}`,
      );
    const now = world.monotonic();
    const undisturbed = lastAt + simulated.process.startedAt > disturbedAt;
    if (failures > 0 && undisturbed && now > retryAt + LATE_MS)
      this.#findings.add('back-off', `${key} is tried ${now - retryAt} ms too late by ${name}`);
  }

  failed(key: string): void {
    const now = this.#life.world.monotonic();
    const { failures = 0, retryAt = 0 } = this.#failing.get(key) ?? {};
    if (failures > 0 && now < retryAt) {
      this.#failing.set(key, { failures, retryAt, lastAt: now });
      return;
    }
    const delay = Math.min(BACKOFF.baseMs * 2 ** failures, BACKOFF.maxMs);
    this.#failing.set(key, { failures: failures + 1, retryAt: now + delay, lastAt: now });
  }

  succeeded(key: string): void {
    this.#failing.delete(key);
  }
}
