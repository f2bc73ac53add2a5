import type { Clock, Timer } from '../world/world.ts';

/** Abort signal that fires when an outer signal aborts or when a timeout expires, whichever comes first. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #timer: Timer | undefined;
  readonly #follow = () => this.#controller.abort(this.#outer?.reason);
  /** Whether the timeout expired. */
  passed = false;

  /** @param ms timeout in milliseconds; 0 disables it */
  constructor(clock: Pick<Clock, 'after'>, ms: number, outer: AbortSignal | undefined) {
    this.#outer = outer;
    if (outer?.aborted) this.#follow();
    else outer?.addEventListener('abort', this.#follow, { once: true });
    if (ms <= 0) return;
    this.#timer = clock.after(ms, () => {
      this.passed = true;
      this.#controller.abort(new Error(`timed out after ${ms / 1000} s`));
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Cancels the timeout. The outer signal still aborts the deadline's signal. */
  lift(): void {
    this.#timer?.cancel();
  }

  /** Cancels the timeout and removes the listener from the outer signal, which may outlive thousands of deadlines. */
  end(): void {
    this.#timer?.cancel();
    this.#outer?.removeEventListener('abort', this.#follow);
  }
}
