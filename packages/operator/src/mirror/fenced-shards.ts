import type { ShardOwnership } from '@vmwright/runtime';
import type { Session } from './database.ts';

/** Shard that all rows belong to if sharding is off. */
const ONLY_SHARD = 0;

/**
 * The shards that this replica writes during a leadership term. The replica first acquires a shard, so that no other
 * session can write its rows. Then it compares the rows of the shard with the cluster. Only then does it write rows of
 * the shard. Without sharding, there is one shard, which the leader owns.
 */
export class FencedShards {
  readonly #ownership: ShardOwnership | undefined;
  /** Whether to take shards from another session that does not release them. */
  readonly #takesOver: boolean;
  /** Shards that the current session has acquired in the database. */
  #acquired: ReadonlySet<number> = new Set();
  /**
   * Acquired shards that were compared with the cluster. Rows of other shards are not written yet, because they may
   * show newer states than the cache.
   */
  #compared: ReadonlySet<number> = new Set();

  constructor(ownership: ShardOwnership | undefined, takesOver: boolean) {
    this.#ownership = ownership;
    this.#takesOver = takesOver;
  }

  /**
   * Returns whether this replica is responsible for a VM: the shard of the VM is assigned to the replica, and the
   * replica has acquired it in the database. Changes before the acquisition can be ignored, because all VMs of the
   * shard are compared afterwards.
   */
  owns(key: string): boolean {
    const ownership = this.#ownership;
    return ownership === undefined || (ownership.owns(key) && this.#acquired.has(ownership.shardOf(key)));
  }

  shardOf(key: string): number {
    return this.#ownership?.shardOf(key) ?? ONLY_SHARD;
  }

  /** Returns whether the row of a VM may be written. */
  isCompared(key: string): boolean {
    return this.#compared.has(this.shardOf(key));
  }

  /**
   * Acquires all shards of this replica for a new session.
   * @param assertLeader called before and after the acquisition; throws if this replica is no longer the leader and
   *   only the leader may write
   */
  async acquireAll(session: Session, assertLeader: () => void, signal: AbortSignal): Promise<void> {
    this.#acquired = new Set();
    this.#compared = new Set();
    const shards = this.#ownership?.held ?? new Set([ONLY_SHARD]);
    assertLeader(); // a deposed leader must not take the shards from its successor
    await session.acquire([...shards], this.#takesOver, signal);
    assertLeader();
    this.#acquired = shards;
  }

  /** Records that the rows of all acquired shards were compared with the cluster. */
  compared(): void {
    this.#compared = this.#acquired;
  }

  /** Releases the shards that this replica has lost. @param onLost called before the session releases the shards */
  async releaseLost(session: Session, onLost: () => void): Promise<void> {
    const lost = this.#ownership === undefined ? [] : [...this.#acquired.difference(this.#ownership.held)];
    if (lost.length === 0) return;
    this.#acquired = this.#acquired.difference(new Set(lost));
    this.#compared = this.#compared.difference(new Set(lost));
    onLost();
    await session.release(lost);
  }

  /**
   * Acquires the shards that were newly assigned to this replica.
   * @param compare compares the rows of these shards; if it fails, the next call acquires the shards again
   */
  async acquireGained(session: Session, compare: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const gained = this.#ownership?.held.difference(this.#acquired) ?? new Set();
    if (gained.size === 0) return;
    await session.acquire([...gained], this.#takesOver, signal);
    this.#acquired = this.#acquired.union(gained);
    try {
      await compare();
    } catch (error) {
      this.#acquired = this.#acquired.difference(gained); // acquired and compared again at the next attempt
      throw error;
    }
  }
}
