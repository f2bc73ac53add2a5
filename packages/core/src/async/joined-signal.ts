/**
 * Abort signal that fires when the first of several sources aborts. Disposing detaches it from the sources.
 *
 * It replaces `AbortSignal.any`. In Node 24, each call of `AbortSignal.any` leaks about 160 bytes per source, until the
 * source is garbage-collected. The signal of a leader's term lives for weeks and is a source in millions of reconciles.
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

  /** Stops following the sources. The signal keeps its current state. */
  [Symbol.dispose](): void {
    for (const source of this.#sources) source.removeEventListener('abort', this.#follow);
  }
}
