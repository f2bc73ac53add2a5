import type { Clock, Timer } from '@vmwright/core';

interface Alarm {
  readonly at: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is told to go on. */
export class VirtualClock implements Clock {
  #time = 1_000_000;
  readonly #alarms = new Set<Alarm>();

  now(): number {
    return this.#time;
  }

  monotonic(): number {
    return this.#time;
  }

  after(ms: number, callback: () => void): Timer {
    const alarm = { at: this.#time + Math.max(ms, 0), callback };
    this.#alarms.add(alarm);
    return { cancel: () => void this.#alarms.delete(alarm) };
  }

  /** Lets time pass; what is due on the way goes off in order. */
  advance(ms: number): void {
    const end = this.#time + ms;
    for (;;) {
      const next = [...this.#alarms].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#alarms.delete(next);
      this.#time = Math.max(this.#time, next.at);
      next.callback();
    }
    this.#time = end;
  }
}
