import type { World } from '@vmwright/core';
import type { CacheEvent } from '../cache/cache.ts';
import type { KubeObject } from '../kind/object.ts';

type Change = Pick<CacheEvent<KubeObject>, 'type' | 'object' | 'before' | 'replaces'>;

export interface WitnessedDeletionsOptions {
  /** The cache of the kind. */
  readonly cache: { subscribe(subscriber: (change: Change) => void): unknown };
  readonly world: Pick<World, 'monotonic'>;
  /** Whether the deletion of an object was to delete its external resources. */
  readonly deletesExternal: (object: KubeObject) => boolean;
}

/** A create that lands later than this after its owner was deleted is reported, not collected. */
const KEPT_MS = 60 * 60_000;
/** About 1 MB. When more objects are deleted within `KEPT_MS`, the oldest deletions are dropped. */
const MOST = 10_000;

/**
 * UIDs of the objects whose deletion this process has witnessed: the last state in its cache had a `deletionTimestamp`,
 * which the API server never takes back, and its deletion was to delete its external resources.
 *
 * An object that is only missing from a list is not witnessed: after a restore of etcd, objects that people want are
 * missing, too.
 *
 * A restart of the process loses this memory on purpose: what it can no longer prove is reported to a person. A standby
 * replica has its caches running, so a change of leader does not lose it.
 */
export class WitnessedDeletions {
  readonly #world: Pick<World, 'monotonic'>;
  readonly #deletesExternal: (object: KubeObject) => boolean;
  /** Time of each deletion by UID, oldest first. */
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

  /** Restarts the retention of a deletion, while a resource of the deleted object cannot be removed. */
  touch(uid: string): void {
    if (this.has(uid)) this.#remember(uid);
  }

  #see(change: Change): void {
    // Restored with the same UID from a backup that is older than its deletion.
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
