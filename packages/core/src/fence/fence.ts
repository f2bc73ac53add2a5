/** Thrown by a closed fence that has no more specific error. */
export class FenceClosedError extends Error {
  readonly code = 'FENCE_CLOSED';

  constructor(message = 'the fence is closed: this work may no longer change anything') {
    super(message);
    this.name = 'FenceClosedError';
  }
}

export interface FenceOptions {
  /** Outer fence. Closing the outer fence closes this fence. @default none */
  readonly within?: Fence | undefined;
  /**
   * Returns whether the period of the fence, such as a leader's term, still lasts.
   * @default the period lasts until `close` is called
   */
  readonly holds?: () => boolean;
  /**
   * Creates the error that `assertOpen` throws.
   * @default the error of a closed `within`, else the reason passed to `close`
   */
  readonly error?: () => Error;
}

/**
 * Permission to make changes during one period: a leader's term, the ownership of a shard, or one operation within
 * either.
 *
 * Guarantees: the signal aborts when the fence closes. A closed fence never opens again, even if the same process
 * becomes leader again. A nested fence closes with its outer fence.
 *
 * Assumptions: the process may be suspended between any two instructions, so the signal may abort too late to prevent a
 * change. Therefore `assertOpen` must be called immediately before each request that makes a change. Clients call it
 * through their option `assertLeader`.
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

  /**
   * Aborts when the fence closes: by `close`, with its outer fence, or when `assertOpen` finds that the period has
   * ended.
   */
  get signal(): AbortSignal {
    return this.#closed.signal;
  }

  /** Whether the fence is open. Reading this property has no side effect. */
  get isOpen(): boolean {
    const { within, holds } = this.#options;
    return !this.signal.aborted && (within?.isOpen ?? true) && (holds?.() ?? true);
  }

  /** Checks that the fence is open. @throws on every call after the period has ended */
  assertOpen(): void {
    if (this.#checkOpen()) return;
    throw this.#error();
  }

  /**
   * Returns a nested fence, which closes no later than this one. Dispose it when its work ends, to remove its listener
   * from this fence.
   */
  nested(): Fence {
    return new Fence({ within: this });
  }

  /** Ends the period. Further calls do nothing. @param reason abort reason of `signal`, by default the fence's error */
  close(reason: unknown = this.#options.error?.() ?? new FenceClosedError()): void {
    this.#options.within?.signal.removeEventListener('abort', this.#follow);
    this.#closed.abort(reason);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Returns whether the fence is open. Closes an expired fence permanently, so that setting the clock back cannot
   * reopen it.
   */
  #checkOpen(): boolean {
    if (this.signal.aborted) return false;
    const { within, holds } = this.#options;
    if (within !== undefined && !within.#checkOpen()) return false;
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
