import type { Bound } from '../calls/calls.ts';
import type { Ref } from '../properties/properties.ts';
import type { Source } from './source.ts';

/** A collector that is followed, with its filters. */
export class Live {
  readonly bound: Bound;
  readonly collector: Ref;
  /** The sources by their filters. */
  readonly filters = new Map<string, Source>();
  /** Sources whose filters are new: not everything of them has been told. */
  readonly fresh = new Set<Source>();
  /** Aborts when the collector is followed no more. */
  readonly signal: AbortSignal;
  readonly #over: AbortController;
  readonly #joining = new Set<Promise<void>>();
  #nudge = new AbortController();

  /**
   * @param over ends it
   * @param signal aborts with that one, or when the feed is stopped; the calls of `bound` end with it
   */
  constructor(bound: Bound, collector: Ref, over: AbortController, signal: AbortSignal) {
    this.bound = bound;
    this.collector = collector;
    this.signal = signal;
    this.#over = over;
  }

  /** Aborts when a source has been added: the call that waits knows nothing of it. */
  get nudged(): AbortSignal {
    return this.#nudge.signal;
  }

  add(filter: string, source: Source): void {
    this.filters.set(filter, source);
    this.fresh.add(source);
    this.#nudge.abort();
    this.#nudge = new AbortController();
  }

  /** Keeps work that ends with the collector. */
  join(work: Promise<void>): void {
    const mine = work.finally(() => this.#joining.delete(mine));
    this.#joining.add(mine);
  }

  /** The collector cannot be followed any more. */
  fail(error: unknown): void {
    this.#over.abort(error);
  }

  /** Ends all that was begun for the collector, or it might replace what the next attempt opens. */
  async end(): Promise<void> {
    this.#over.abort(new Error('the collector is followed no more'));
    await Promise.allSettled(this.#joining);
  }
}
