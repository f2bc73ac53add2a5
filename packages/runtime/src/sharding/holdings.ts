interface Shard {
  readonly leaving: AbortController;
  /** Pieces of work under way. */
  working: number;
  /** Called when the last has ended. */
  drained: (() => void) | undefined;
}

/** A piece of work on one shard. */
export interface Work {
  /** Aborts when the shard is to be given to another, or is lost. */
  readonly signal: AbortSignal;
  /** To be called when nothing of it is under way any more: only then may the shard go. */
  end(): void;
}

/** The shards that a member holds, and what is under way on each. */
export class Holdings {
  readonly #shards = new Map<number, Shard>();
  #over: { readonly reason: unknown } | undefined;

  get held(): ReadonlySet<number> {
    return new Set(this.#shards.keys());
  }

  get size(): number {
    return this.#shards.size;
  }

  holds(shard: number): boolean {
    return this.#shards.has(shard);
  }

  /** Whether new work may begin on it. */
  isOpen(shard: number): boolean {
    const entry = this.#shards.get(shard);
    return entry !== undefined && !entry.leaving.signal.aborted;
  }

  gain(shards: Iterable<number>): void {
    for (const shard of shards) {
      const leaving = new AbortController();
      if (this.#over !== undefined) leaving.abort(this.#over.reason);
      this.#shards.set(shard, { leaving, working: 0, drained: undefined });
    }
  }

  begin(shard: number): Work | undefined {
    const entry = this.#shards.get(shard);
    if (entry === undefined || entry.leaving.signal.aborted) return undefined;
    entry.working += 1;
    let ended = false;
    return {
      signal: entry.leaving.signal,
      end: () => {
        if (ended) return; // to count it twice would let the shard go while something else is under way
        ended = true;
        entry.working -= 1;
        if (entry.working === 0) entry.drained?.();
      },
    };
  }

  /**
   * Begins no new work on a shard, asks what is under way to end, and lets go of it then.
   * @param gone called when it is no longer held
   */
  leave(shard: number, reason: unknown, gone: () => void): void {
    const entry = this.#shards.get(shard);
    if (entry === undefined || entry.leaving.signal.aborted) return;
    const drained = () => {
      this.#shards.delete(shard);
      gone();
    };
    entry.drained = drained;
    entry.leaving.abort(reason);
    if (entry.working === 0) drained();
  }

  /** Begins no new work on any shard and asks all that is under way to end; none is let go of. */
  stop(reason: unknown): void {
    this.#over ??= { reason };
    for (const { leaving } of this.#shards.values()) leaving.abort(reason);
  }
}
