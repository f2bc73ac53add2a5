import {
  type Client,
  ConfigMap,
  ForbiddenError,
  ignoreNotFound,
  type Kind,
  type KubeObject,
  refOf,
} from '@vmwright/runtime';

/**
 * Annotation with the resourceVersion that `read` found. Each change of the annotation creates a new version of the
 * ConfigMap.
 */
const FENCE = 'vmwright.dev/read-version';

/** Entries of a ledger in one version of its ConfigMap. */
export interface Entries {
  /** Undefined if the ConfigMap does not exist. */
  readonly resourceVersion: string | undefined;
  /** UID of an object → value */
  readonly values: ReadonlyMap<string, string>;
}

/**
 * State of the object that an entry belongs to. `Unreadable`: the operator may not read the object, because it does not
 * watch the namespace any more.
 */
export type ObjectState = 'Exists' | 'Gone' | 'Unreadable';

/** Changes of entries, by UID of the object: null removes an entry. */
export type EntryChanges = Readonly<Record<string, string | null>>;

/** Access to the ConfigMap of a ledger. */
export interface EntryStore {
  /**
   * Reads the entries. If there are any, also stores a new version of the ConfigMap. An earlier write that is still in
   * transit then fails with a conflict. Otherwise that write could remove an entry that is in use again.
   */
  read(): Promise<Entries>;
  /**
   * Changes entries.
   * @throws ConflictError, AlreadyExistsError or NotFoundError if the ConfigMap has changed since `known` was read
   */
  write(known: Entries, changes: EntryChanges): Promise<Entries>;
  /** Returns the resourceVersion of the ConfigMap; undefined if it does not exist. */
  version(): Promise<string | undefined>;
  /** Returns the state of the object with this key and UID, according to the API server. */
  stateOf(key: string, uid: string): Promise<ObjectState>;
}

/**
 * Returns access to the entries in a ConfigMap.
 * @param client client of a reconcile; when the replica has lost leadership, its writes fail
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
    version: async () => (await ignoreNotFound(client.get(ConfigMap, ref)))?.metadata.resourceVersion,
    stateOf: async (key, uid) => {
      const object = refOf(key);
      if (object.namespace === undefined) return 'Gone'; // not an entry of the operator: those have a namespace
      try {
        const found = await ignoreNotFound(client.get(kind, object));
        return found?.metadata.uid === uid ? 'Exists' : 'Gone';
      } catch (error) {
        if (error instanceof ForbiddenError) return 'Unreadable';
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
