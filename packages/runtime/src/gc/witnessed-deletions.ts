import type { World } from '@vmwright/core';
import type { CacheEvent } from '../cache/cache-event.ts';
import type { KubeObject } from '../kind/object.ts';

type Change = Pick<CacheEvent<KubeObject>, 'type' | 'object' | 'before' | 'replaces'>;

export interface WitnessedDeletionsOptions {
  /** Cache of the objects that own external resources. */
  readonly cache: { subscribe(subscriber: (change: Change) => void): unknown };
  readonly world: Pick<World, 'monotonic'>;
  /** Returns whether the external resources of a deleted object should be deleted with it. */
  readonly deletesExternal: (object: KubeObject) => boolean;
}

/**
 * Time for which the deletion of an object is remembered. An external resource of the object that is created after that
 * time is reported, not deleted.
 */
const KEPT_MS = 60 * 60_000;
/** Maximum number of remembered deletions (about 1 MB). Above it, the oldest are dropped. */
const MOST = 10_000;

/**
 * UIDs of the objects that this process has seen being deleted. An object counts as deleted if all of these hold:
 * - It disappeared from the cache.
 * - Its last state had a `deletionTimestamp`, which the API server never removes. Without this condition, objects that
 *   are missing after a restore of etcd would count as deleted.
 * - Its external resources should be deleted with it.
 *
 * The UIDs are deliberately kept in memory only. After a restart of the process, orphans of earlier deletions are only
 * reported. A change of leader loses nothing, because the caches of standby replicas witness the same deletions.
 */
export class WitnessedDeletions {
  readonly #world: Pick<World, 'monotonic'>;
  readonly #deletesExternal: (object: KubeObject) => boolean;
  /** UID of each deleted object → time at which its deletion was witnessed, or of its last `touch`; oldest first. */
  readonly #seenAt = new Map<string, number>();

  constructor({ cache, world, deletesExternal }: WitnessedDeletionsOptions) {
    this.#world = world;
    this.#deletesExternal = deletesExternal;
    cache.subscribe((change) => this.#see(change));
  }

  has(uid: string): boolean {
    const seenAt = this.#seenAt.get(uid);
    return seenAt !== undefined && this.#world.monotonic() - seenAt < KEPT_MS;
  }

  /**
   * Restarts the time for which a deletion is remembered. Called before each attempt to delete a resource of the
   * deleted object.
   */
  touch(uid: string): void {
    if (this.has(uid)) this.#remember(uid);
  }

  #see(change: Change): void {
    // An object that is added again with the same UID was restored from a backup: forget its deletion.
    if (change.type === 'added') this.#seenAt.delete(change.object.metadata.uid ?? '');
    const gone = change.type === 'removed' ? change.object : change.replaces ? change.before : undefined;
    const isDeleted = gone?.metadata.deletionTimestamp !== undefined && this.#deletesExternal(gone);
    if (isDeleted) this.#remember(gone.metadata.uid ?? '');
  }

  #remember(uid: string): void {
    const now = this.#world.monotonic();
    this.#seenAt.delete(uid);
    this.#seenAt.set(uid, now);
    for (const [oldest, seenAt] of this.#seenAt) {
      if (this.#seenAt.size <= MOST && now - seenAt < KEPT_MS) break;
      this.#seenAt.delete(oldest);
    }
  }
}
