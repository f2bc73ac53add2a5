import type { KubeObject } from '../kind/object.ts';

/** Names under which an object is found: the values of one property, say. */
export type Indexer<T> = (object: T) => readonly string[];

interface Entry {
  /**
   * The object as JSON. A string of 2.5 KB is one heap cell without pointers; the object that it stands for is a hundred,
   * takes twice the memory, and the garbage collector visits each of them. Whoever reads gets a copy of his own, so
   * nobody can harm what is stored.
   */
  json: string;
  version: number;
  readonly uid: string;
  /** Index to values. */
  indexed: ReadonlyMap<string, readonly string[]> | undefined;
}

interface Tombstone {
  readonly key: string;
  /** The version that it was last seen in. */
  readonly lastSeenVersion: number;
  /** Up to which nothing is taken in. */
  readonly hiddenUntil: number;
}

/** What became of an object that was put or removed. */
export interface Change {
  readonly type: 'added' | 'changed' | 'removed';
  readonly key: string;
  /** As JSON; undefined when there was or is none. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** Of the newest state known. */
  readonly version: number;
  /** Whether `before` is another object of the same name, whose deletion was not seen. @default false */
  readonly replaces?: boolean;
}

/**
 * The objects of a kind by key, each in its newest known version: an older one never replaces a newer one, wherever the
 * two come from. That makes own writes visible at once and late watch events harmless.
 */
export class Store<T extends KubeObject> {
  readonly #entries = new Map<string, Entry>();
  readonly #indexers = new Map<string, Indexer<T>>();
  /** Index to value to keys. */
  readonly #indexes = new Map<string, Map<string, Set<string>>>();
  /** By uid: objects known to be gone, of which older versions may still come in. */
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

  /** A copy for the caller to keep. */
  get(key: string): T | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : parseObject(entry.json);
  }

  /** An object as if it had just been added. */
  asAdded(key: string): Change | undefined {
    const entry = this.#entries.get(key);
    return entry && { type: 'added', key, before: undefined, after: entry.json, version: entry.version };
  }

  /** Also of what is stored already. */
  addIndex(name: string, indexer: Indexer<T>): void {
    this.#indexers.set(name, indexer);
    this.#indexes.set(name, new Map());
    for (const [key, entry] of this.#entries) this.#index(key, entry, parseObject<T>(entry.json));
  }

  /** The keys of the objects that an index has under this value. */
  find(index: string, value: string): Iterable<string> {
    return this.#indexOf(index).get(value) ?? [];
  }

  /** Number of objects that an index has under this value. */
  count(index: string, value: string): number {
    return this.#indexOf(index).get(value)?.size ?? 0;
  }

  /** @returns undefined if a version at least as new is there already */
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

  /** Removes an object unless a version newer than this deletion is there. */
  remove(key: string, version: number): Change | undefined {
    const known = this.#entries.get(key);
    if (known === undefined || known.version > version) return undefined;
    this.#tombstones.delete(known.uid);
    return this.#drop(key, known);
  }

  /**
   * Removes an object of which we know that it is gone, before the watch has told.
   * @param version which it had left with, and may come back after; without, it is deleted and never does
   */
  addTombstone(key: string, uid: string, version = Number.POSITIVE_INFINITY): Change | undefined {
    const known = this.#entries.get(key);
    if (known?.uid !== uid || known.version > version) return undefined;
    this.#tombstones.set(uid, { key, lastSeenVersion: known.version, hiddenUntil: version });
    return this.#drop(key, known);
  }

  /** The watch has told of a deletion: nothing older can follow. */
  clearTombstone(uid: string | undefined): void {
    if (uid !== undefined) this.#tombstones.delete(uid);
  }

  /**
   * A whole list of what begins so has come. It was made after the deletion of those that it lacks, unless it is older than they: nothing
   * older of them can follow. Those that it still has are told of as deleted later.
   */
  clearTombstones(prefix: string, keys: ReadonlySet<string>, version: number): void {
    for (const [uid, { key, lastSeenVersion }] of this.#tombstones)
      if (key.startsWith(prefix) && !keys.has(key) && version >= lastSeenVersion) this.#tombstones.delete(uid);
  }

  #indexOf(name: string): ReadonlyMap<string, ReadonlySet<string>> {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new Error(`there is no index "${name}"; add it before the cache starts`);
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

/** Out of what this store itself has written. */
export function parseObject<T>(json: string): T {
  return JSON.parse(json);
}

/**
 * Resource versions are compared as numbers, which Kubernetes promises for its own resources since 1.35 and has kept
 * since etcd 3. One that is no number is taken for newer than anything.
 */
export function versionOf({ metadata }: KubeObject): number {
  const version = Number(metadata.resourceVersion);
  return Number.isNaN(version) ? Number.POSITIVE_INFINITY : version;
}
