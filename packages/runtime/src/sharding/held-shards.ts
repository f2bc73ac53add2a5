import type { Fence } from '@vmwright/core';

interface Shard {
  /** Open from the moment at which the shard is held until it is let go. */
  readonly fence: Fence;
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
export class HeldShards {
  readonly #shards = new Map<number, Shard>();
  readonly #fenceOf: (shard: number) => Fence;
  #over: { readonly reason: unknown } | undefined;

  /** @param fenceOf a new fence for a shard that is gained */
  constructor(fenceOf: (shard: number) => Fence) {
    this.#fenceOf = fenceOf;
  }

  get held(): ReadonlySet<number> {
    return new Set(this.#shards.keys());
  }

  get size(): number {
    return this.#shards.size;
  }

  holds(shard: number): boolean {
    return this.#shards.has(shard);
  }

  /** The fence of the time for which the shard is held; undefined where it is not. */
  fence(shard: number): Fence | undefined {
    return this.#shards.get(shard)?.fence;
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
      this.#shards.set(shard, { fence: this.#fenceOf(shard), leaving, working: 0, drained: undefined });
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
      entry.fence.close();
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
