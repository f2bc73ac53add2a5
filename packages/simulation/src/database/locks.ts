import type { Backend } from './backend.ts';

/**
 * Row locks of the status mirror's statements and of other clients, and advisory locks that sessions hold on shards.
 */
export class Locks {
  /** Owners of each locked row. Only share locks have several owners. */
  readonly #rows = new Map<string, Set<object>>();
  readonly #shards = new Map<number, Backend>();
  readonly #waiting: { readonly id: string; readonly act: () => void }[] = [];

  /** Locks a row, unless another transaction has locked it. @returns whether the row is now locked for the owner */
  tryLock(id: string, owner: object): boolean {
    const owners = this.#rows.get(id);
    if (owners !== undefined && !owners.has(owner)) return false;
    this.#rows.set(id, new Set([owner]));
    return true;
  }

  /** Locks a row in share mode. */
  share(id: string, owner: object): void {
    this.#rows.set(id, (this.#rows.get(id) ?? new Set()).add(owner));
  }

  /** Releases all row locks of a transaction, and runs the actions that waited for the unlocked rows. */
  release(owner: object): void {
    for (const [id, owners] of this.#rows)
      if (owners.delete(owner) && owners.size === 0) this.#rows.delete(id);
    const ready = this.#waiting.filter(({ id }) => !this.#rows.has(id));
    for (const each of ready) this.#waiting.splice(this.#waiting.indexOf(each), 1);
    for (const { id, act } of ready) this.whenFree(id, act);
  }

  /** Runs an action as soon as no transaction holds a lock on this row. */
  whenFree(id: string, act: () => void): void {
    if (this.#rows.has(id)) this.#waiting.push({ id, act });
    else act();
  }

  holderOf(shard: number): Backend | undefined {
    return this.#shards.get(shard);
  }

  tryLockShard(shard: number, session: Backend): boolean {
    const holder = this.#shards.get(shard);
    if (holder !== undefined && holder !== session) return false;
    this.#shards.set(shard, session);
    return true;
  }

  unlockShard(shard: number, session: Backend): void {
    if (this.#shards.get(shard) === session) this.#shards.delete(shard);
  }

  releaseShards(session: Backend): void {
    for (const [shard, holder] of this.#shards) if (holder === session) this.#shards.delete(shard);
  }
}
