/**
 * Abort signal that fires when the first of several sources aborts. Disposing detaches it from the sources.
 *
 * It replaces `AbortSignal.any`, which in Node 24 leaks about 160 bytes per call on each source until that source is
 * garbage-collected. The signal of a leader's term is such a source: it can live for weeks and millions of reconciles.
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
