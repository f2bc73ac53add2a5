import { type Client, ConfigMap, ignoreNotFound, refOf } from '@vmwright/runtime';
import { VMDiskImage } from './resource.ts';

/** ConfigMap in the operator's namespace that lists the images that hold a sync slot: UID → `namespace/name`. */
export const SLOTS_NAME = 'vmwright-image-syncs';

/** Annotation with the version that was read last. */
const FENCE = 'vmwright.dev/read-version';

/** Holders of sync slots in one version of the ConfigMap. */
export interface HeldSlots {
  /** Undefined if the ConfigMap does not exist. */
  readonly resourceVersion: string | undefined;
  /** UID → key of the image */
  readonly holders: ReadonlyMap<string, string>;
}

/** Access to the ConfigMap with the sync slots. */
export interface SlotStore {
  /**
   * Reads the holders and stores a new version of the ConfigMap, so that an earlier write that is still in transit conflicts: it
   * could otherwise release a slot that its image uses again.
   */
  read(): Promise<HeldSlots>;
  /**
   * Adds holders, or removes those with null.
   * @throws ConflictError, AlreadyExistsError or NotFoundError if the ConfigMap has changed since `held` was read
   */
  write(held: HeldSlots, change: Readonly<Record<string, string | null>>): Promise<HeldSlots>;
  /** Whether the API server has the image with this key and UID. */
  exists(key: string, uid: string): Promise<boolean>;
}

/** Returns the sync slots that are stored in a namespace. @param client client of a reconcile, which is fenced */
export function slotStore(client: Client, namespace: string): SlotStore {
  const ref = { namespace, name: SLOTS_NAME };
  return {
    read: async () => {
      const stored = await ignoreNotFound(client.get(ConfigMap, ref));
      const { resourceVersion = '' } = stored?.metadata ?? {};
      if (Object.keys(stored?.data ?? {}).length === 0) return heldIn(stored);
      const metadata = { resourceVersion, annotations: { [FENCE]: resourceVersion } };
      return heldIn(await client.mergePatch(ConfigMap, ref, { metadata }));
    },
    write: async ({ resourceVersion }, change) => {
      if (resourceVersion !== undefined)
        return heldIn(
          await client.mergePatch(ConfigMap, ref, { metadata: { resourceVersion }, data: change }),
        );
      const added = Object.entries(change).filter((entry): entry is [string, string] => entry[1] !== null);
      return heldIn(await client.create(ConfigMap, { metadata: ref, data: Object.fromEntries(added) }));
    },
    exists: async (key, uid) => {
      const image = refOf(key);
      if (image.namespace === undefined) return false; // not written by the operator
      return (await ignoreNotFound(client.get(VMDiskImage, image)))?.metadata.uid === uid;
    },
  };
}

function heldIn(stored: ConfigMap | undefined): HeldSlots {
  return {
    resourceVersion: stored?.metadata.resourceVersion,
    holders: new Map(Object.entries(stored?.data ?? {})),
  };
}
