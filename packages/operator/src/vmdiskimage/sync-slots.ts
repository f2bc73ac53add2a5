import { AlreadyExistsError, ConflictError, NotFoundError } from '@vmwright/runtime';
import type { HeldSlots, SlotStore } from './slot-store.ts';
import type { QueuedImage } from './sync-queue.ts';

/** Number of conflicting writes after which an operation fails. The controller retries it with a back-off. */
const MAX_CONFLICTS = 10;
const CONFLICTS = [ConflictError, AlreadyExistsError, NotFoundError];

export interface SyncSlotsOptions {
  /** Maximum number of images that hold a slot. */
  readonly limit: number;
  /** Returns the images that need a slot or hold one, in the order in which they get slots. */
  readonly queue: () => readonly QueuedImage[];
  /** Whether the cache has the image with this key and UID. Only a missing image is read from the API server. */
  readonly isCached: (key: string, uid: string) => boolean;
  /** Called when a slot became free. */
  readonly onReleased: () => void;
}

/** Returns the images that get the free slots: the first ones in the queue that hold none. */
export function grant(
  holders: Pick<HeldSlots['holders'], 'has' | 'size'>,
  queue: readonly QueuedImage[],
  limit: number,
): readonly QueuedImage[] {
  return queue.filter(({ uid }) => !holders.has(uid)).slice(0, Math.max(0, limit - holders.size));
}

/**
 * Sync slots: permits to import an image, stored in a ConfigMap.
 *
 * Guarantees: the ConfigMap never lists more images than the limit allows, whichever replicas act, because every write carries
 * the resourceVersion of the list that it was decided on. Images get slots first come, first served. A slot survives the crash of
 * its replica; its image uses or releases it. The slot of an image that no longer exists is released when another image needs it.
 *
 * The last known version is kept in memory, so that most operations are a single write. If another replica has written since,
 * the write conflicts, and the operation reads the ConfigMap and decides again.
 */
export class SyncSlots {
  readonly #options: SyncSlotsOptions;
  #known: HeldSlots | undefined;
  /** Operations run one after the other: concurrent ones of this replica would only conflict. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: SyncSlotsOptions) {
    this.#options = options;
  }

  /** Forgets the known version, at the start of a leadership term. */
  reset(): void {
    this.#known = undefined;
  }

  /** Whether an image holds a slot. */
  async holds(uid: string, store: SlotStore): Promise<boolean> {
    const { holders } = this.#known ?? (await this.#exclusively(() => this.#read(store)));
    return holders.has(uid);
  }

  /** Takes a slot for an image if it is next. @returns whether the image holds a slot now */
  acquire(uid: string, store: SlotStore): Promise<boolean> {
    return this.#exclusively(() => this.#decide(store, (held) => this.#tryAcquire(uid, held, store)));
  }

  /** Releases the slot of an image, if it holds one. */
  release(uid: string, store: SlotStore): Promise<void> {
    return this.#exclusively(() =>
      this.#decide(store, async (held) => {
        if (held.holders.has(uid)) await this.#remove([uid], held, store);
      }),
    );
  }

  async #tryAcquire(uid: string, held: HeldSlots, store: SlotStore): Promise<boolean> {
    const { limit, queue } = this.#options;
    if (held.holders.has(uid)) return true;
    const next = grant(held.holders, queue(), limit).find((image) => image.uid === uid);
    if (next !== undefined) {
      this.#known = await store.write(held, { [uid]: next.key });
      return true;
    }
    // Only images that would be next look for abandoned slots, so that a long queue causes few requests.
    const waiting = queue().filter((image) => !held.holders.has(image.uid));
    if (!waiting.slice(0, limit).some((image) => image.uid === uid)) return false;
    const abandoned = await this.#findAbandoned(held, store);
    if (abandoned.length === 0) return false;
    return this.#tryAcquire(uid, await this.#remove(abandoned, held, store), store);
  }

  /** Returns the UIDs of holders that do not exist any more. The cache alone does not prove that: its watch may be late. */
  async #findAbandoned({ holders }: HeldSlots, store: SlotStore): Promise<readonly string[]> {
    const abandoned: string[] = [];
    for (const [uid, key] of holders)
      if (!this.#options.isCached(key, uid) && !(await store.exists(key, uid))) abandoned.push(uid);
    return abandoned;
  }

  async #remove(uids: readonly string[], held: HeldSlots, store: SlotStore): Promise<HeldSlots> {
    const left = await store.write(held, Object.fromEntries(uids.map((uid) => [uid, null])));
    this.#known = left;
    this.#options.onReleased();
    return left;
  }

  /** Calls `act` with the known holders, and again with the current ones while its writes conflict. */
  async #decide<R>(store: SlotStore, act: (held: HeldSlots) => Promise<R>): Promise<R> {
    for (let conflicts = 0; ; conflicts++) {
      try {
        return await act(this.#known ?? (await this.#read(store)));
      } catch (error) {
        this.#known = undefined; // also after other errors: the write may have been executed
        const isConflict = CONFLICTS.some((conflict) => error instanceof conflict);
        if (!isConflict || conflicts >= MAX_CONFLICTS) throw error;
      }
    }
  }

  async #read(store: SlotStore): Promise<HeldSlots> {
    const held = await store.read();
    this.#known = held;
    return held;
  }

  #exclusively<R>(operation: () => Promise<R>): Promise<R> {
    const result = this.#last.then(operation);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
