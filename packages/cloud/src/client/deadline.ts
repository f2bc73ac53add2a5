import type { CloudWorld, Timer } from './world.ts';

/** A signal that aborts with an outer one, or when time is up. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #timer: Timer;
  readonly #follow = () => this.#controller.abort(this.#outer?.reason);
  /** Whether time was up. */
  passed = false;

  constructor(world: Pick<CloudWorld, 'after'>, ms: number, outer: AbortSignal | undefined) {
    this.#outer = outer;
    if (outer?.aborted) this.#follow();
    else outer?.addEventListener('abort', this.#follow, { once: true });
    this.#timer = world.after(ms, () => {
      this.passed = true;
      this.#controller.abort(new Error(`it took longer than ${ms / 1000} s`));
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Lets go of both: outer signals may outlive thousands of these. */
  end(): void {
    this.#timer.cancel();
    this.#outer?.removeEventListener('abort', this.#follow);
  }
}

/** Resolves after so many milliseconds, or rejects with the signal's reason as soon as it aborts. */
export function wait(world: Pick<CloudWorld, 'after'>, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = world.after(ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve();
    });
    signal?.addEventListener('abort', abort, { once: true });
  });
}
