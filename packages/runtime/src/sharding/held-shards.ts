import type { Fence } from '@vmwright/core';

interface HeldShard {
  /** Fence of the shard; open while the shard is held. */
  readonly fence: Fence;
  /** Aborts when the shard is to be released. */
  readonly releasing: AbortController;
  /** Number of reconciles in progress. */
  inProgress: number;
  /** Called when the last reconcile in progress has ended. */
  onDrained: (() => void) | undefined;
}

/** Work on one shard, such as a reconcile. */
export interface Work {
  /** Aborts when the shard is to be handed over to another replica or is lost, and when the member stops. */
  readonly signal: AbortSignal;
  /** Must be called when the work has ended completely. The shard is released only after the end of all work on it. */
  end(): void;
}

/** Shards that a member holds, with the work in progress on each. */
export class HeldShards {
  readonly #shards = new Map<number, HeldShard>();
  readonly #fenceOf: (shard: number) => Fence;
  #stopped: { readonly reason: unknown } | undefined;

  /** @param fenceOf creates the fence of a gained shard */
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

  /** Returns the fence of a held shard; undefined if the shard is not held. */
  fence(shard: number): Fence | undefined {
    return this.#shards.get(shard)?.fence;
  }

  /** Returns whether new work on the shard may begin. */
  isOpen(shard: number): boolean {
    const entry = this.#shards.get(shard);
    return entry !== undefined && !entry.releasing.signal.aborted;
  }

  gain(shards: Iterable<number>): void {
    for (const shard of shards) {
      const releasing = new AbortController();
      if (this.#stopped !== undefined) releasing.abort(this.#stopped.reason);
      this.#shards.set(shard, {
        fence: this.#fenceOf(shard),
        releasing,
        inProgress: 0,
        onDrained: undefined,
      });
    }
  }

  /** Begins work on a shard; returns undefined if the shard is not held or is being released. */
  begin(shard: number): Work | undefined {
    const entry = this.#shards.get(shard);
    if (entry === undefined || entry.releasing.signal.aborted) return undefined;
    entry.inProgress += 1;
    let ended = false;
    return {
      signal: entry.releasing.signal,
      end: () => {
        if (ended) return; // counting the end twice would release the shard while other work is in progress
        ended = true;
        entry.inProgress -= 1;
        if (entry.inProgress === 0) entry.onDrained?.();
      },
    };
  }

  /**
   * Prevents new work on a shard, aborts the work in progress, and releases the shard when that work has ended.
   * @param onReleased called when the shard is no longer held
   */
  release(shard: number, reason: unknown, onReleased: () => void): void {
    const entry = this.#shards.get(shard);
    if (entry === undefined || entry.releasing.signal.aborted) return;
    const drained = () => {
      this.#shards.delete(shard);
      entry.fence.close();
      onReleased();
    };
    entry.onDrained = drained;
    entry.releasing.abort(reason);
    if (entry.inProgress === 0) drained();
  }

  /** Prevents new work on all shards and aborts all work in progress. The shards stay held. */
  stop(reason: unknown): void {
    this.#stopped ??= { reason };
    for (const { releasing } of this.#shards.values()) releasing.abort(reason);
  }
}
