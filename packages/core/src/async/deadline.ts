import type { Clock, Timer } from '../world/world.ts';

/** A signal that aborts with an outer one, or when time is up. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #timer: Timer | undefined;
  readonly #follow = () => this.#controller.abort(this.#outer?.reason);
  /** Whether time was up. */
  passed = false;

  /** @param ms 0 for no end in time */
  constructor(clock: Pick<Clock, 'after'>, ms: number, outer: AbortSignal | undefined) {
    this.#outer = outer;
    if (outer?.aborted) this.#follow();
    else outer?.addEventListener('abort', this.#follow, { once: true });
    if (ms <= 0) return;
    this.#timer = clock.after(ms, () => {
      this.passed = true;
      this.#controller.abort(new Error(`it took longer than ${ms / 1000} s`));
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** From here on time is no matter; the outer signal still is. */
  lift(): void {
    this.#timer?.cancel();
  }

  /** Lets go of both: outer signals may outlive thousands of these. */
  end(): void {
    this.#timer?.cancel();
    this.#outer?.removeEventListener('abort', this.#follow);
  }
}
