import type { Bound } from '../calls/calls.ts';
import type { Ref } from '../properties/properties.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';
import type { Source } from './source.ts';

type Updates = readonly Vim25['ObjectUpdate'][];

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
  /** Updates of filters that CreateFilter has not answered yet: the waiting call may bring them on another connection first. */
  readonly #early = new Map<string, Updates[]>();
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
    for (const updates of this.#early.get(filter) ?? []) source.apply(updates);
    this.#early.delete(filter);
    this.fresh.add(source);
    this.#nudge.abort();
    this.#nudge = new AbortController();
  }

  /** Passes updates to the source of their filter, or keeps them until the filter is known. */
  apply(filter: string, updates: Updates): void {
    const source = this.filters.get(filter);
    if (source !== undefined) source.apply(updates);
    else if (this.#joining.size > 0) this.#early.set(filter, [...(this.#early.get(filter) ?? []), updates]);
  }

  /** Keeps work that ends with the collector. */
  join(work: Promise<void>): void {
    const mine = work.finally(() => {
      this.#joining.delete(mine);
      if (this.#joining.size === 0) this.#early.clear(); // what is left is of filters that were removed
    });
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
