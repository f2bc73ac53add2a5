import type { Clock, Timer } from './world.ts';

/** A signal that aborts with an outer one, or when time is up. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #timer: Timer;
  readonly #follow = () => this.#controller.abort(this.#outer?.reason);
  /** Whether time was up. */
  passed = false;

  constructor(clock: Pick<Clock, 'after'>, ms: number, outer: AbortSignal | undefined) {
    this.#outer = outer;
    if (outer?.aborted) this.#follow();
    else outer?.addEventListener('abort', this.#follow, { once: true });
    this.#timer = clock.after(ms, () => {
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

/**
 * A signal that aborts as soon as one of several does, until it is disposed of.
 *
 * Not `AbortSignal.any`: in Node 24 every call leaves about 160 bytes on each source for as long as the source lives,
 * which for a watched vCenter may be weeks and millions of answers.
 */
export class JoinedSignal implements Disposable {
  readonly #controller = new AbortController();
  readonly #sources: readonly AbortSignal[];
  readonly #follow = () => this.#controller.abort(this.#sources.find(({ aborted }) => aborted)?.reason);

  constructor(...sources: readonly AbortSignal[]) {
    this.#sources = sources;
    if (sources.some(({ aborted }) => aborted)) this.#follow();
    else for (const source of sources) source.addEventListener('abort', this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Lets go of the sources: the signal stays as it is. */
  [Symbol.dispose](): void {
    for (const source of this.#sources) source.removeEventListener('abort', this.#follow);
  }
}

/** Resolves after so many milliseconds, or rejects with the signal's reason as soon as it aborts. */
export function wait(clock: Pick<Clock, 'after'>, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.after(ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve();
    });
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/** What a promise gives, or the signal's reason once it aborts; the promise goes on by itself. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** The delay before the next try: doubled each time, and not the same for all who failed at once. */
export function backoff(
  world: { random(): number },
  failures: number,
  { firstMs, longestMs }: { readonly firstMs: number; readonly longestMs: number },
): number {
  return Math.min(firstMs * 2 ** failures, longestMs) * (0.5 + world.random() / 2);
}
