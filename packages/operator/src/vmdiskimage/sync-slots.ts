import type { Client } from '@vmwright/runtime';
import type { EntryStore } from '../ledger/entry-store.ts';
import { findAbandoned, Ledger, type LedgerOperation, removals } from '../ledger/ledger.ts';
import type { QueuedImage } from './sync-queue.ts';

/** @template C client of a reconcile, with which the slots are read and written */
export interface SyncSlotsOptions<C> {
  /** Returns the stored slots. */
  readonly storeOf: (client: C) => EntryStore;
  /** Maximum number of images that hold a slot. */
  readonly limit: number;
  /** Returns the images that need a slot or hold one, in the order in which they get slots. */
  readonly queue: () => readonly QueuedImage[];
  /** Whether the cache has the image with this key and UID. If not, the image is read from the API server. */
  readonly isCached: (key: string, uid: string) => boolean;
  /** Called when a slot became free. */
  readonly onReleased: () => void;
}

/** Returns the images that get the free slots: the first ones in the queue that hold none. */
export function grant(
  holders: Pick<ReadonlyMap<string, string>, 'has' | 'size'>,
  queue: readonly QueuedImage[],
  limit: number,
): readonly QueuedImage[] {
  return queue.filter(({ uid }) => !holders.has(uid)).slice(0, Math.max(0, limit - holders.size));
}

/**
 * Sync slots: permits to import an image. They are stored in a ConfigMap, as UID → key of the image.
 *
 * Guarantees:
 * - The ConfigMap never lists more images than the limit allows, whichever replicas write to it (see `Ledger`).
 * - Images get slots first come, first served.
 * - A slot survives a crash of the operator. Its image uses or releases it later.
 * - The slot of an image that no longer exists is released when another image needs a slot.
 */
export class SyncSlots<C = Client> {
  readonly #options: SyncSlotsOptions<C>;
  readonly #ledger = new Ledger();

  constructor(options: SyncSlotsOptions<C>) {
    this.#options = options;
  }

  /** Makes the next operation read the holders again. Called at the start of a leadership term. */
  reset(): void {
    this.#ledger.reset();
  }

  /** Whether an image holds a slot. */
  async holds(uid: string, client: C): Promise<boolean> {
    return (await this.#ledger.read(this.#options.storeOf(client))).values.has(uid);
  }

  /** Takes a slot for an image if the image is next. @returns whether the image holds a slot now */
  acquire(uid: string, client: C): Promise<boolean> {
    const store = this.#options.storeOf(client);
    return this.#ledger.decide(store, (operation) => this.#tryAcquire(uid, operation, store));
  }

  /** Releases the slot of an image, if it holds one. */
  release(uid: string, client: C): Promise<void> {
    return this.#ledger.decide(this.#options.storeOf(client), async (operation) => {
      if (operation.entries.values.has(uid)) await this.#remove([uid], operation);
    });
  }

  async #tryAcquire(uid: string, operation: LedgerOperation, store: EntryStore): Promise<boolean> {
    const { limit, queue } = this.#options;
    const holders = operation.entries.values;
    if (holders.has(uid)) return true;
    const next = grant(holders, queue(), limit).find((image) => image.uid === uid);
    if (next !== undefined) {
      await operation.write({ [uid]: next.key });
      return true;
    }
    // Looks for the slots of deleted images only if this image is one of the first that wait. So a long queue causes
    // few requests.
    const waiting = queue().filter((image) => !holders.has(image.uid));
    if (!waiting.slice(0, limit).some((image) => image.uid === uid)) return false;
    // A holder that is missing from the cache may still exist, because the watch may be delayed. So it is read from the
    // API server.
    const missing = [...holders].filter(([holder, key]) => !this.#options.isCached(key, holder));
    const abandoned = await findAbandoned(new Map(missing), store);
    if (abandoned.length === 0) return false;
    await this.#remove(abandoned, operation);
    return this.#tryAcquire(uid, operation, store);
  }

  async #remove(uids: readonly string[], operation: LedgerOperation): Promise<void> {
    await operation.write(removals(uids));
    this.#options.onReleased();
  }
}
