import type { ShardOwnership } from '@vmwright/runtime';
import type { Session } from './database.ts';

/** Shard that all rows belong to if sharding is off. */
const ONLY_SHARD = 0;

/**
 * The shards that a term writes. A shard is first acquired (fenced in the database), then its rows are compared, then it may be
 * written. Without sharding, there is one shard, which the leader owns.
 */
export class FencedShards {
  readonly #ownership: ShardOwnership | undefined;
  /** Whether to take shards from another session that does not release them. */
  readonly #takesOver: boolean;
  /** Shards whose fence the session holds. */
  #acquired: ReadonlySet<number> = new Set();
  /** Acquired shards whose rows were compared. Other shards are not written, because the cache may be older than their rows. */
  #compared: ReadonlySet<number> = new Set();

  constructor(ownership: ShardOwnership | undefined, takesOver: boolean) {
    this.#ownership = ownership;
    this.#takesOver = takesOver;
  }

  /**
   * Returns whether this replica is responsible for a VM. It is not yet responsible for the VMs of a shard that was
   * assigned to it but that it has not acquired in the database: the comparison after the acquisition includes these
   * VMs.
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
   * @param assertLeader throws if only the leader may write and this replica is no longer the leader; called before and
   *   after the acquisition
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

  /** Records that the rows of all acquired shards were compared. */
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
