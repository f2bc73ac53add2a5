import type { Clock, Timer } from '@vmwright/runtime';

/**
 * Longest single timer; longer times take several timers, because a timer of more than 24.8 days overflows in Node.js.
 */
const LONGEST_TIMER_MS = 24 * 60 * 60 * 1_000;

/** The next time at which facts change without an event, such as the start of maintenance. */
export class Boundary implements Disposable {
  readonly #clock: Clock;
  readonly #onReached: () => void;
  #next: { readonly at: number; readonly timer: Timer } | undefined;

  /** @param onReached called when the time is reached, unless `cross` has already returned true for this time */
  constructor(clock: Clock, onReached: () => void) {
    this.#clock = clock;
    this.#onReached = onReached;
  }

  /** Returns whether the time has been reached. Returns true only once for each time. */
  cross(): boolean {
    if (this.#next === undefined || this.#next.at > this.#clock.now()) return false;
    this.#clear();
    return true;
  }

  /** Replaces the time at which facts change. @param at the new time in milliseconds since 1970; infinity for never */
  set(at: number): void {
    if (at === this.#next?.at) return;
    this.#clear();
    if (Number.isFinite(at)) this.#arm(at);
  }

  [Symbol.dispose](): void {
    this.#clear();
  }

  #arm(at: number): void {
    const timer = this.#clock.after(Math.min(at - this.#clock.now(), LONGEST_TIMER_MS), () => {
      if (this.#clock.now() < at) this.#arm(at);
      else this.#onReached();
    });
    this.#next = { at, timer };
  }

  #clear(): void {
    this.#next?.timer.cancel();
    this.#next = undefined;
  }
}
