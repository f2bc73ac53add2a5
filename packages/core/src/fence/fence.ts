/** A fence was closed, and no more specific error is known. */
export class FenceClosedError extends Error {
  readonly code = 'FENCE_CLOSED';

  constructor(message = 'the period in which this work may act has ended') {
    super(message);
    this.name = 'FenceClosedError';
  }
}

export interface FenceOptions {
  /** Outer fence; closing it closes this one. @default none */
  readonly within?: Fence | undefined;
  /** Whether the period lasts at this moment, by the clock. @default until `close` is called */
  readonly holds?: () => boolean;
  /** The error of `assertOpen`. @default that of `within` where it is closed, else the reason that was given to `close` */
  readonly error?: () => Error;
}

/**
 * Permission to change something, limited to one period: a leader's term, the time for which a replica owns a shard, or
 * one operation within those.
 *
 * Guarantees: once the period has ended the fence stays closed for ever, also when the same process leads again, and its
 * signal aborts. A fence within another closes with it.
 *
 * Assumptions: a process may be stopped between any two instructions, and the signal may be late. Code that changes
 * something calls `assertOpen` right before it sends the request; clients do so when they are given it as `allow`.
 */
export class Fence implements Disposable {
  readonly #options: FenceOptions;
  readonly #closed = new AbortController();
  readonly #follow = () => this.close(this.#options.within?.signal.reason);

  constructor(options: FenceOptions = {}) {
    this.#options = options;
    const outer = options.within?.signal;
    if (outer?.aborted) this.#closed.abort(outer.reason);
    else outer?.addEventListener('abort', this.#follow, { once: true });
  }

  /** Aborts when the period ends. */
  get signal(): AbortSignal {
    return this.#closed.signal;
  }

  /** Whether the period lasts at this moment. Asking changes nothing. */
  get isOpen(): boolean {
    const { within, holds } = this.#options;
    return !this.signal.aborted && (within?.isOpen ?? true) && (holds?.() ?? true);
  }

  /** @throws when the period has ended; from then on at every call */
  assertOpen(): void {
    if (this.#lasts()) return;
    throw this.#error();
  }

  /** A fence that closes with this one, or before. Dispose of it when its work has ended: this one may outlive many. */
  nested(): Fence {
    return new Fence({ within: this });
  }

  /** Ends the period; calls after the first change nothing. @param reason of the signal; by default that of the fence */
  close(reason: unknown = this.#options.error?.() ?? new FenceClosedError()): void {
    this.#options.within?.signal.removeEventListener('abort', this.#follow);
    this.#closed.abort(reason);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** A period that has ended by the clock ends for good: a clock that is set back does not bring it back. */
  #lasts(): boolean {
    if (this.signal.aborted) return false;
    const { within, holds } = this.#options;
    if (within !== undefined && !within.#lasts()) return false;
    if (holds?.() ?? true) return true;
    this.close();
    return false;
  }

  #error(): Error {
    const { within, error } = this.#options;
    if (error !== undefined) return error();
    if (within?.signal.aborted) return within.#error();
    const { reason } = this.signal;
    return reason instanceof Error ? reason : new FenceClosedError();
  }
}
