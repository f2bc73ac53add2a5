import type { StoredObject } from './object.ts';
import type { Owners } from './ownership/managers.ts';
import type { Resource } from './resource.ts';
import { Version } from './version.ts';

/** Something that was stored: `after` is missing for a deletion, `before` for a creation. */
export interface Change {
  readonly resource: Resource;
  readonly key: string;
  /** The resource version of the change. */
  readonly number: number;
  readonly before: Version | undefined;
  readonly after: Version | undefined;
}

/** All objects of a kind, and what became of them. */
interface Shelf {
  readonly objects: Map<string, Version>;
  /** In their order; those that are compacted are gone. */
  changes: Change[];
  /** Keys in order; made anew when one has come or gone. */
  sorted: readonly string[] | undefined;
}

export type Listener = (change: Change) => void;

/** What etcd is to the API server: objects by key, one counter for all changes, and a history of them. */
export class Store {
  readonly #shelves = new Map<string, Shelf>();
  readonly #listeners: Listener[] = [];
  #number: number;
  #compacted: number;

  constructor(firstNumber = 1_000) {
    this.#number = firstNumber;
    this.#compacted = firstNumber;
  }

  /** The newest resource version of all. */
  get number(): number {
    return this.#number;
  }

  /** Up to which the history is forgotten. */
  get compacted(): number {
    return this.#compacted;
  }

  /** Told of each change, in order, right after it. */
  listen(listener: Listener): void {
    this.#listeners.push(listener);
  }

  get(resource: Resource, key: string): Version | undefined {
    return this.#shelf(resource).objects.get(key);
  }

  /** In the order of their keys. */
  *list(resource: Resource): Generator<readonly [string, Version], void, undefined> {
    const shelf = this.#shelf(resource);
    shelf.sorted ??= [...shelf.objects.keys()].sort();
    for (const key of shelf.sorted) {
      const version = shelf.objects.get(key);
      if (version !== undefined) yield [key, version];
    }
  }

  /** As it was at an earlier moment that is not forgotten. */
  *listAt(resource: Resource, number: number): Generator<readonly [string, Version], void, undefined> {
    const { objects, changes } = this.#shelf(resource);
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

  /** What has changed after a moment that is not forgotten. */
  changesSince(resource: Resource, number: number): readonly Change[] {
    const { changes } = this.#shelf(resource);
    let from = changes.length;
    while (from > 0 && (changes[from - 1]?.number ?? 0) > number) from -= 1;
    return changes.slice(from);
  }

  /** Stores a new state. @param object whose resource version is filled in here */
  put(resource: Resource, key: string, object: StoredObject, owners: Owners | (() => Owners)): Version {
    this.#number += 1;
    const number = this.#number;
    const metadata = { ...object.metadata, resourceVersion: String(number) };
    const after = new Version(resource, { ...object, metadata }, number, owners);
    const shelf = this.#shelf(resource);
    const before = shelf.objects.get(key);
    if (before === undefined) shelf.sorted = undefined;
    shelf.objects.set(key, after);
    this.#tell(shelf, { resource, key, number, before, after });
    return after;
  }

  delete(resource: Resource, key: string): void {
    const shelf = this.#shelf(resource);
    const before = shelf.objects.get(key);
    if (before === undefined) return;
    this.#number += 1;
    shelf.objects.delete(key);
    shelf.sorted = undefined;
    this.#tell(shelf, { resource, key, number: this.#number, before, after: undefined });
  }

  /** Forgets all history up to now: whoever asks for what was before gets a 410. */
  compact(): void {
    this.#compacted = this.#number;
    for (const shelf of this.#shelves.values()) shelf.changes = [];
  }

  /** Takes objects away as a restore does: without a change that anybody is told of. Older versions are forgotten. */
  lose(resource: Resource, keys: readonly string[]): void {
    const shelf = this.#shelf(resource);
    for (const key of keys) shelf.objects.delete(key);
    shelf.sorted = undefined;
    // As `etcdutl snapshot restore --bump-revision --mark-compacted` does, so that watches notice.
    this.#number += 1_000;
    this.compact();
  }

  #tell(shelf: Shelf, change: Change): void {
    shelf.changes.push(change);
    for (const listener of this.#listeners) listener(change);
  }

  #shelf({ id }: Resource): Shelf {
    const known = this.#shelves.get(id);
    if (known !== undefined) return known;
    const shelf: Shelf = { objects: new Map(), changes: [], sorted: undefined };
    this.#shelves.set(id, shelf);
    return shelf;
  }
}
