import type { WorkQueue } from '@vmwright/runtime';
import type { Replica } from './replica.ts';
import type { Violations } from './violations.ts';

export const BACKOFF = { baseMs: 500, maxMs: 16_000 };
/** Maximum lateness of a retry. It covers late timers and the duration of an attempt. */
const LATE_MS = 600;

interface Failing {
  failures: number;
  retryAt: number;
  lastAt: number;
}

/**
 * Checks the back-off of failing objects. This class counts the failures of each object itself. The work queue must
 * have the same count, and must retry the object in time. If an event triggers an attempt during the back-off, a
 * failure of that attempt does not count.
 */
export class Retries {
  readonly #violations: Violations;
  readonly #replica: Replica;
  readonly #queue: WorkQueue;
  readonly #failing = new Map<string, Failing>();

  constructor(replica: Replica, queue: WorkQueue, violations: Violations) {
    this.#replica = replica;
    this.#queue = queue;
    this.#violations = violations;
  }

  attempt(key: string): void {
    const { failures = 0, retryAt = 0, lastAt = 0 } = this.#failing.get(key) ?? {};
    const counted = this.#queue.failures(key);
    const { name, world, simulated, disturbedAt } = this.#replica;
    if (counted !== failures)
      this.#violations.add(
        'back-off',
        `${key} has failed ${failures} times, but the queue of ${name} counts ${counted}`,
      );
    const now = world.monotonic();
    const undisturbed = lastAt + simulated.process.startedAt > disturbedAt;
    if (failures > 0 && undisturbed && now > retryAt + LATE_MS)
      this.#violations.add('back-off', `${key} is retried ${now - retryAt} ms too late by ${name}`);
  }

  failed(key: string): void {
    const now = this.#replica.world.monotonic();
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
