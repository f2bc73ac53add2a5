import type { Clock, Timer } from '../world/world.ts';

interface PendingTimer {
  readonly at: number;
  readonly callback: () => void;
}

/** Number of microtask turns in which a promise can settle before the time advances to the next timer. */
const SETTLE_TURNS = 50;

/** Clock for tests that advances only by `advance` and `runUntilSettled`. */
export class VirtualClock implements Clock {
  readonly #timers = new Set<PendingTimer>();
  #time: number;

  /** @param start milliseconds since 1970 */
  constructor(start = 1_000_000) {
    this.#time = start;
  }

  now(): number {
    return this.#time;
  }

  monotonic(): number {
    return this.#time;
  }

  after(ms: number, callback: () => void): Timer {
    const timer = { at: this.#time + Math.max(ms, 0), callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Number of pending timers. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Advances the time and fires the timers that become due, in order. */
  advance(ms: number): void {
    const end = this.#time + ms;
    for (;;) {
      const next = this.#next();
      if (next === undefined || next.at > end) break;
      this.#timers.delete(next);
      this.#time = Math.max(this.#time, next.at);
      next.callback();
    }
    this.#time = end;
  }

  /**
   * Advances the time from timer to timer until the promise settles. @throws Error if the promise is pending and no
   * timer is set
   */
  async runUntilSettled<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
    };
    promise.then(settle, settle);
    for (;;) {
      for (let turn = 0; turn < SETTLE_TURNS && !isSettled; turn++) await Promise.resolve();
      if (isSettled) return promise;
      const next = this.#next();
      if (next === undefined) throw new Error('the promise is pending and no timer is set');
      this.advance(next.at - this.#time);
    }
  }

  #next(): PendingTimer | undefined {
    return [...this.#timers].sort((a, b) => a.at - b.at)[0];
  }
}
