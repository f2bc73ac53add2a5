import {
  type Client,
  ConfigMap,
  ForbiddenError,
  ignoreNotFound,
  type Kind,
  type KubeObject,
  refOf,
} from '@vmwright/runtime';

/** Annotation with the version that was read last. */
const FENCE = 'vmwright.dev/read-version';

/** Entries of a ledger in one version of its ConfigMap. */
export interface Entries {
  /** Undefined if the ConfigMap does not exist. */
  readonly resourceVersion: string | undefined;
  /** UID of an object → value */
  readonly values: ReadonlyMap<string, string>;
}

/** Changes of entries: null removes an entry. */
export type EntryChanges = Readonly<Record<string, string | null>>;

/** Access to the ConfigMap of a ledger. */
export interface EntryStore {
  /**
   * Reads the entries and stores a new version of the ConfigMap, so that an earlier write that is still in transit conflicts: it
   * could otherwise remove an entry that its object uses again.
   */
  read(): Promise<Entries>;
  /**
   * Changes entries.
   * @throws ConflictError, AlreadyExistsError or NotFoundError if the ConfigMap has changed since `known` was read
   */
  write(known: Entries, changes: EntryChanges): Promise<Entries>;
  /** Whether the API server has the object with this key and UID, or does not allow the operator to read it. */
  exists(key: string, uid: string): Promise<boolean>;
}

/**
 * Returns the entries in a ConfigMap.
 * @param client client of a reconcile, which is fenced
 * @param kind kind of the objects that the entries belong to
 */
export function entryStore<T extends KubeObject>(
  client: Client,
  ref: { readonly namespace: string; readonly name: string },
  kind: Kind<T>,
): EntryStore {
  return {
    read: async () => {
      const stored = await ignoreNotFound(client.get(ConfigMap, ref));
      const { resourceVersion = '' } = stored?.metadata ?? {};
      if (Object.keys(stored?.data ?? {}).length === 0) return entriesIn(stored);
      const metadata = { resourceVersion, annotations: { [FENCE]: resourceVersion } };
      return entriesIn(await client.mergePatch(ConfigMap, ref, { metadata }));
    },
    write: async ({ resourceVersion }, changes) => {
      if (resourceVersion !== undefined)
        return entriesIn(
          await client.mergePatch(ConfigMap, ref, { metadata: { resourceVersion }, data: changes }),
        );
      const added = Object.entries(changes).filter((entry): entry is [string, string] => entry[1] !== null);
      return entriesIn(await client.create(ConfigMap, { metadata: ref, data: Object.fromEntries(added) }));
    },
    exists: async (key, uid) => {
      const object = refOf(key);
      if (object.namespace === undefined) return false; // not written by the operator
      try {
        return (await ignoreNotFound(client.get(kind, object)))?.metadata.uid === uid;
      } catch (error) {
        if (error instanceof ForbiddenError) return true; // its namespace is no longer watched
        throw error;
      }
    },
  };
}

function entriesIn(stored: ConfigMap | undefined): Entries {
  return {
    resourceVersion: stored?.metadata.resourceVersion,
    values: new Map(Object.entries(stored?.data ?? {})),
  };
}
