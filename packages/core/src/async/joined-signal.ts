/**
 * A signal that aborts as soon as one of several does, until it is disposed of.
 *
 * Not `AbortSignal.any`: in Node 24 every call leaves about 160 bytes on each source for as long as the source lives,
 * which for a leader's term may be weeks and millions of reconciles.
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
