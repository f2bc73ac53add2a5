import {
  AlreadyExistsError,
  type Client,
  ConfigMap,
  ConflictError,
  NotFoundError,
  refOf,
} from '@vmwright/runtime';
import { VMDiskImage } from './resource.ts';
import type { QueuedImage } from './sync-queue.ts';

/** ConfigMap in the operator's namespace that lists the images that hold a sync slot: UID → `namespace/name`. */
export const SLOTS_NAME = 'vmwright-image-syncs';

/** Number of conflicting writes after which an operation fails. The controller retries it with a back-off. */
const MAX_CONFLICTS = 10;

/** Calls of the client that the slots need. */
export type SlotClient = Pick<Client, 'get' | 'create' | 'mergePatch'>;

export interface SyncSlotsOptions {
  /** Namespace of the ConfigMap. */
  readonly namespace: string;
  /** Maximum number of images that hold a slot. */
  readonly limit: number;
  /** Returns the images that need a slot or hold one, in the order in which they get slots. */
  readonly queue: () => readonly QueuedImage[];
  /** Whether the cache has the image with this key and UID. Only a missing image is read from the API server. */
  readonly isCached: (key: string, uid: string) => boolean;
  /** Called when a slot became free. */
  readonly onReleased: () => void;
}

/** Holders of slots in one version of the ConfigMap. */
interface Held {
  /** Undefined if the ConfigMap does not exist. */
  readonly resourceVersion: string | undefined;
  /** UID → key */
  readonly holders: ReadonlyMap<string, string>;
}

/** Returns the images that get the free slots: the first ones in the queue that hold none. */
export function grant(
  holders: Pick<Held['holders'], 'has' | 'size'>,
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
  #known: Held | undefined;
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
  async holds(uid: string, client: SlotClient): Promise<boolean> {
    const { holders } = this.#known ?? (await this.#exclusively(() => this.#read(client)));
    return holders.has(uid);
  }

  /** Takes a slot for an image if it is next. @returns whether the image holds a slot now */
  acquire(uid: string, client: SlotClient): Promise<boolean> {
    return this.#exclusively(() => this.#decide(client, (held) => this.#tryAcquire(uid, held, client)));
  }

  /** Releases the slot of an image, if it holds one. */
  release(uid: string, client: SlotClient): Promise<void> {
    return this.#exclusively(() =>
      this.#decide(client, async (held) => {
        if (held.holders.has(uid)) await this.#remove([uid], held, client);
      }),
    );
  }

  async #tryAcquire(uid: string, held: Held, client: SlotClient): Promise<boolean> {
    const { limit, queue } = this.#options;
    if (held.holders.has(uid)) return true;
    const next = grant(held.holders, queue(), limit).find((image) => image.uid === uid);
    if (next !== undefined) {
      await this.#write(held, { [uid]: next.key }, client);
      return true;
    }
    // Only images that would be next look for abandoned slots, so that a long queue causes few requests.
    const waiting = queue().filter((image) => !held.holders.has(image.uid));
    if (!waiting.slice(0, limit).some((image) => image.uid === uid)) return false;
    const abandoned = await this.#findAbandoned(held, client);
    if (abandoned.length === 0) return false;
    await this.#remove(abandoned, held, client);
    return this.#tryAcquire(uid, this.#known ?? (await this.#read(client)), client);
  }

  /** Returns the UIDs of holders that do not exist any more. The cache alone does not prove that: its watch may be late. */
  async #findAbandoned({ holders }: Held, client: SlotClient): Promise<readonly string[]> {
    const abandoned: string[] = [];
    for (const [uid, key] of holders) {
      if (this.#options.isCached(key, uid)) continue;
      const ref = refOf(key);
      const found =
        ref.namespace === undefined ? undefined : await ignoreNotFound(client.get(VMDiskImage, ref));
      if (found?.metadata.uid !== uid) abandoned.push(uid);
    }
    return abandoned;
  }

  async #remove(uids: readonly string[], held: Held, client: SlotClient): Promise<void> {
    await this.#write(held, Object.fromEntries(uids.map((uid) => [uid, null])), client);
    this.#options.onReleased();
  }

  /** @throws ConflictError, AlreadyExistsError or NotFoundError if the ConfigMap has changed since it was read */
  async #write(
    { resourceVersion }: Held,
    change: Readonly<Record<string, string | null>>,
    client: SlotClient,
  ): Promise<void> {
    const ref = { namespace: this.#options.namespace, name: SLOTS_NAME };
    const added = Object.entries(change).filter((entry): entry is [string, string] => entry[1] !== null);
    this.#known = heldIn(
      resourceVersion === undefined
        ? await client.create(ConfigMap, { metadata: ref, data: Object.fromEntries(added) })
        : await client.mergePatch(ConfigMap, ref, { metadata: { resourceVersion }, data: change }),
    );
  }

  /** Calls `act` with the known holders, and again with the current ones while its writes conflict. */
  async #decide<R>(client: SlotClient, act: (held: Held) => Promise<R>): Promise<R> {
    for (let conflicts = 0; ; conflicts++) {
      try {
        return await act(this.#known ?? (await this.#read(client)));
      } catch (error) {
        // After any other error, such as a lost response, the write may have been executed.
        this.#known = undefined;
        const isConflict = CONFLICTS.some((conflict) => error instanceof conflict);
        if (!isConflict || conflicts >= MAX_CONFLICTS) throw error;
      }
    }
  }

  async #read(client: SlotClient): Promise<Held> {
    const ref = { namespace: this.#options.namespace, name: SLOTS_NAME };
    this.#known = heldIn(await ignoreNotFound(client.get(ConfigMap, ref)));
    return this.#known;
  }

  #exclusively<R>(operation: () => Promise<R>): Promise<R> {
    const result = this.#last.then(operation);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

const CONFLICTS = [ConflictError, AlreadyExistsError, NotFoundError];

function heldIn(stored: ConfigMap | undefined): Held {
  return {
    resourceVersion: stored?.metadata.resourceVersion,
    holders: new Map(Object.entries(stored?.data ?? {})),
  };
}

/** Resolves to undefined instead of failing if the object does not exist. */
export async function ignoreNotFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
