import type { KubeObject } from '../kind/object.ts';

/** Returns the values under which an index lists an object, such as the name of the node it runs on. */
export type Indexer<T> = (object: T) => readonly string[];

interface Entry {
  /**
   * The object as JSON. A string of 2.5 KB is one heap cell without pointers. The parsed object takes twice the memory,
   * in about a hundred cells that the garbage collector must visit. Readers get their own copy, so they cannot modify
   * the stored object.
   */
  json: string;
  version: number;
  readonly uid: string;
  /** Index name → values. */
  indexed: ReadonlyMap<string, readonly string[]> | undefined;
}

/**
 * Marks an object that was removed from the store after a write of this process, so that `put` ignores older versions
 * of it that the watch still delivers.
 */
interface Tombstone {
  readonly key: string;
  /** Newest version that was stored before the removal. */
  readonly lastSeenVersion: number;
  /** Newest version that `put` ignores. */
  readonly hiddenUntil: number;
}

/** Result of a put or remove that changed the store. */
export interface Change {
  readonly type: 'added' | 'changed' | 'removed';
  readonly key: string;
  /** Previous state as JSON; undefined if the object was added. */
  readonly before: string | undefined;
  /** New state as JSON; undefined if the object was removed. */
  readonly after: string | undefined;
  /** Resource version of the newest known state. */
  readonly version: number;
  /**
   * Whether `before` is a different object that had the same name. If so, that object was deleted, and there was no
   * `removed` change for it. @default false
   */
  readonly replaces?: boolean;
}

/**
 * Objects of a kind by key, each in its newest known version. An older version never replaces a newer one, whether it
 * comes from the watch or from a write's response. So the program's own writes are visible immediately, and late watch
 * events are harmless.
 */
export class Store<T extends KubeObject> {
  readonly #entries = new Map<string, Entry>();
  readonly #indexers = new Map<string, Indexer<T>>();
  /** Index name → value → keys. */
  readonly #indexes = new Map<string, Map<string, Set<string>>>();
  /** Tombstones by UID of the removed object. */
  readonly #tombstones = new Map<string, Tombstone>();

  get size(): number {
    return this.#entries.size;
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys();
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Returns a copy that the caller may modify. */
  get(key: string): T | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : parseObject(entry.json);
  }

  /** Returns the change that a new subscriber gets for an existing object. */
  asAdded(key: string): Change | undefined {
    const entry = this.#entries.get(key);
    return entry && { type: 'added', key, before: undefined, after: entry.json, version: entry.version };
  }

  /** Adds an index and fills it with the stored objects. */
  addIndex(name: string, indexer: Indexer<T>): void {
    this.#indexers.set(name, indexer);
    this.#indexes.set(name, new Map());
    for (const [key, entry] of this.#entries) this.#index(key, entry, parseObject<T>(entry.json));
  }

  /** Returns the keys of the objects that an index lists under a value. */
  find(index: string, value: string): Iterable<string> {
    return this.#indexOf(index).get(value) ?? [];
  }

  /** Returns the number of objects that an index lists under a value. */
  count(index: string, value: string): number {
    return this.#indexOf(index).get(value)?.size ?? 0;
  }

  /**
   * Stores an object.
   * @returns undefined if the stored version is at least as new, or a tombstone hides this version
   */
  put(key: string, object: T): Change | undefined {
    const version = versionOf(object);
    const uid = object.metadata.uid ?? '';
    const known = this.#entries.get(key);
    if ((this.#tombstones.get(uid)?.hiddenUntil ?? 0) >= version) return undefined;
    if (known !== undefined && known.version >= version && Number.isFinite(version)) return undefined;
    const json = JSON.stringify(object);
    if (known !== undefined) this.#unindex(key, known);
    const entry: Entry = { json, version, uid, indexed: undefined };
    this.#entries.set(key, entry);
    this.#index(key, entry, object);
    return {
      type: known === undefined ? 'added' : 'changed',
      key,
      before: known?.json,
      after: json,
      version,
      replaces: known !== undefined && known.uid !== uid,
    };
  }

  /** Removes an object unless the stored version is newer than this deletion. */
  remove(key: string, version: number): Change | undefined {
    const known = this.#entries.get(key);
    if (known === undefined || known.version > version) return undefined;
    this.#tombstones.delete(known.uid);
    return this.#drop(key, known);
  }

  /**
   * Removes an object that a write of this process has deleted, or changed so that the cache's selector no longer
   * matches it. Older versions that the watch delivers later are ignored.
   * @param version resource version of the write after which the selector no longer matches. Newer versions are
   *   accepted later. Omit it for a deleted object: then no version of the object is accepted.
   */
  addTombstone(key: string, uid: string, version = Number.POSITIVE_INFINITY): Change | undefined {
    const known = this.#entries.get(key);
    if (known?.uid !== uid || known.version > version) return undefined;
    this.#tombstones.set(uid, { key, lastSeenVersion: known.version, hiddenUntil: version });
    return this.#drop(key, known);
  }

  /**
   * Removes each object with this key prefix that is not in `keys`, unless its stored version is newer than `version`.
   * @param keys the complete list of the keys with this prefix that existed at `version`
   */
  removeUnlisted(prefix: string, keys: ReadonlySet<string>, version: number): readonly Change[] {
    const unlisted = [...this.#entries.keys()].filter((key) => key.startsWith(prefix) && !keys.has(key));
    return unlisted.flatMap((key) => this.remove(key, version) ?? []);
  }

  /**
   * Clears the tombstone of an object. Must be called when the watch reports the deletion, after which older versions
   * cannot arrive.
   */
  clearTombstone(uid: string | undefined): void {
    if (uid !== undefined) this.#tombstones.delete(uid);
  }

  /**
   * Clears the tombstones that `keys`, a complete list of the keys with this prefix, makes obsolete. A list that lacks
   * an object and is not older than the last stored version of the object was made after the deletion, so no older
   * version can arrive. The tombstones of objects that the list still contains stay until the watch reports the
   * deletion.
   */
  clearTombstones(prefix: string, keys: ReadonlySet<string>, version: number): void {
    for (const [uid, { key, lastSeenVersion }] of this.#tombstones)
      if (key.startsWith(prefix) && !keys.has(key) && version >= lastSeenVersion)
        this.#tombstones.delete(uid);
  }

  #indexOf(name: string): ReadonlyMap<string, ReadonlySet<string>> {
    const index = this.#indexes.get(name);
    if (index === undefined)
      throw new Error(`index "${name}" does not exist; add it before the cache starts`);
    return index;
  }

  #drop(key: string, known: Entry): Change {
    this.#unindex(key, known);
    this.#entries.delete(key);
    return { type: 'removed', key, before: known.json, after: undefined, version: known.version };
  }

  #index(key: string, entry: Entry, object: T): void {
    if (this.#indexers.size === 0) return;
    const indexed = new Map<string, readonly string[]>();
    for (const [name, indexer] of this.#indexers) {
      const values = indexer(object);
      indexed.set(name, values);
      const index = this.#indexes.get(name);
      for (const value of values) {
        const keys = index?.get(value);
        if (keys === undefined) index?.set(value, new Set([key]));
        else keys.add(key);
      }
    }
    entry.indexed = indexed;
  }

  #unindex(key: string, { indexed }: Entry): void {
    for (const [name, values] of indexed ?? []) {
      const index = this.#indexes.get(name);
      for (const value of values) {
        const keys = index?.get(value);
        keys?.delete(key);
        if (keys?.size === 0) index?.delete(value);
      }
    }
  }
}

/** Parses JSON that the store has written. */
export function parseObject<T>(json: string): T {
  return JSON.parse(json);
}

/**
 * Returns the resource version as a number. Kubernetes guarantees comparable numbers for its own resources since 1.35
 * and has used them since etcd 3. A version that is not a number counts as newer than any other.
 */
export function versionOf({ metadata }: KubeObject): number {
  const version = Number(metadata.resourceVersion);
  return Number.isNaN(version) ? Number.POSITIVE_INFINITY : version;
}
