import type { StoredObject } from './object.ts';
import type { Owners } from './ownership/managers.ts';
import type { Resource } from './resource.ts';
import { Version } from './version.ts';

/** A stored change. `before` is undefined for a creation, `after` for a deletion. */
export interface Change {
  readonly resource: Resource;
  readonly key: string;
  /** The resource version of the change. */
  readonly number: number;
  readonly before: Version | undefined;
  readonly after: Version | undefined;
}

/** Objects of one kind and their history. */
interface Table {
  readonly objects: Map<string, Version>;
  /** Changes since the last compaction, in order. */
  changes: Change[];
  /** Sorted keys; undefined if an object was added or removed since the keys were last sorted. */
  sorted: readonly string[] | undefined;
}

export type Listener = (change: Change) => void;

/** Model of etcd: objects by key, one revision counter for all changes, and the history of changes. */
export class Store {
  readonly #tables = new Map<string, Table>();
  readonly #listeners: Listener[] = [];
  #number: number;
  #compacted: number;

  constructor(firstNumber = 1_000) {
    this.#number = firstNumber;
    this.#compacted = firstNumber;
  }

  /** The newest resource version. */
  get number(): number {
    return this.#number;
  }

  /** The resource version of the last compaction. */
  get compacted(): number {
    return this.#compacted;
  }

  /** Registers a listener that is called synchronously after each change, in order. */
  listen(listener: Listener): void {
    this.#listeners.push(listener);
  }

  get(resource: Resource, key: string): Version | undefined {
    return this.#table(resource).objects.get(key);
  }

  /** Lists the current objects of a kind, sorted by key. */
  *list(resource: Resource): Generator<readonly [string, Version], void, undefined> {
    const table = this.#table(resource);
    table.sorted ??= [...table.objects.keys()].sort();
    for (const key of table.sorted) {
      const version = table.objects.get(key);
      if (version !== undefined) yield [key, version];
    }
  }

  /** Lists the objects of a kind as of a resource version that is not compacted. */
  *listAt(resource: Resource, number: number): Generator<readonly [string, Version], void, undefined> {
    const { objects, changes } = this.#table(resource);
    const then = new Map(objects);
    for (const { key, before } of changes.filter((each) => each.number > number).reverse()) {
      if (before === undefined) then.delete(key);
      else then.set(key, before);
    }
    for (const key of [...then.keys()].sort()) {
      const version = then.get(key);
      if (version !== undefined) yield [key, version];
    }
  }

  /** Returns the changes after a resource version that is not compacted. */
  changesSince(resource: Resource, number: number): readonly Change[] {
    const { changes } = this.#table(resource);
    let from = changes.length;
    while (from > 0 && (changes[from - 1]?.number ?? 0) > number) from -= 1;
    return changes.slice(from);
  }

  /** Stores an object under the next resource version. */
  put(resource: Resource, key: string, object: StoredObject, owners: Owners | (() => Owners)): Version {
    this.#number += 1;
    const number = this.#number;
    const metadata = { ...object.metadata, resourceVersion: String(number) };
    const after = new Version(resource, { ...object, metadata }, number, owners);
    const table = this.#table(resource);
    const before = table.objects.get(key);
    if (before === undefined) table.sorted = undefined;
    table.objects.set(key, after);
    this.#record(table, { resource, key, number, before, after });
    return after;
  }

  delete(resource: Resource, key: string): void {
    const table = this.#table(resource);
    const before = table.objects.get(key);
    if (before === undefined) return;
    this.#number += 1;
    table.objects.delete(key);
    table.sorted = undefined;
    this.#record(table, { resource, key, number: this.#number, before, after: undefined });
  }

  /** Drops all history: requests for older resource versions get 410. */
  compact(): void {
    this.#compacted = this.#number;
    for (const table of this.#tables.values()) table.changes = [];
  }

  /** Removes objects without a change event, as the restore of a backup does, and compacts the history. */
  removeSilently(resource: Resource, keys: readonly string[]): void {
    const table = this.#table(resource);
    for (const key of keys) table.objects.delete(key);
    table.sorted = undefined;
    // Same effect as `etcdutl snapshot restore --bump-revision --mark-compacted`: clients must list again.
    this.#number += 1_000;
    this.compact();
  }

  #record(table: Table, change: Change): void {
    table.changes.push(change);
    for (const listener of this.#listeners) listener(change);
  }

  #table({ id }: Resource): Table {
    const existing = this.#tables.get(id);
    if (existing !== undefined) return existing;
    const table: Table = { objects: new Map(), changes: [], sorted: undefined };
    this.#tables.set(id, table);
    return table;
  }
}
