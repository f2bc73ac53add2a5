import type { Clock, Timer } from '@vmwright/core';

interface PendingTimer {
  readonly at: number;
  readonly callback: () => void;
}

/** Clock that advances only by `advance`. */
export class VirtualClock implements Clock {
  #time = 1_000_000;
  readonly #timers = new Set<PendingTimer>();

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

  /** Advances the time and fires due timers in order. */
  advance(ms: number): void {
    const end = this.#time + ms;
    for (;;) {
      const next = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#time = Math.max(this.#time, next.at);
      next.callback();
    }
    this.#time = end;
  }
}
