import { unlessAborted } from '@vmwright/core';
import type { Bound } from '../calls/calls.ts';
import { StoppedError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import type { PropertyWatcher } from '../feed/feed.ts';
import type { Source } from '../feed/source.ts';
import { SessionView } from '../feed/view.ts';
import {
  isKnown,
  type Known,
  type KnownObject,
  type ManagedType,
  type Ref,
  viewSpec,
} from '../properties/properties.ts';
import type { Properties, Vim25 } from '../vim25/vim25.generated.ts';
import { isEqual } from './equal.ts';
import { type Indexes, keyOf, Store } from './store.ts';

/** Which properties are kept, by type. */
export type Wanted = { readonly [T in ManagedType]?: readonly (keyof Properties[T] & string)[] };

export interface InventoryOptions {
  readonly properties: Wanted;
  /** Below what; all of vCenter unless given. */
  readonly container?: Ref;
  /** Ways to find objects: by name, what an object is found under. */
  readonly indexes?: Indexes;
}

interface Surroundings {
  readonly feed: Pick<PropertyWatcher, 'remove'>;
  readonly troubled?: ((error: unknown) => void) | undefined;
}

export type InventoryChange =
  | { readonly kind: 'added' | 'removed'; readonly object: KnownObject }
  | { readonly kind: 'changed'; readonly object: KnownObject; readonly before: KnownObject };

/**
 * The objects of vCenter that one cares for, kept in memory by what vCenter tells.
 *
 * Flow: filled at the start, then changed as vCenter changes. While vCenter cannot be reached it has what was known
 * last, and `isLive` is false; afterwards it is compared, and what has vanished meanwhile is told as removed.
 *
 * Guarantees: an object is never changed in place; a change is told only where something differs; nothing is removed
 * because of a lost connection or session.
 */
export class Inventory implements Source, Disposable {
  readonly #options: InventoryOptions;
  readonly #surroundings: Surroundings;
  readonly #store: Store;
  readonly #view = new SessionView();
  readonly #listeners = new Set<(change: InventoryChange) => void>();
  readonly #synced = Promise.withResolvers<void>();
  /** Seen since it was begun anew; those that are not, in the end, are gone. */
  #seen: Set<string> | undefined;
  #isSynced = false;
  #isLive = false;

  constructor(options: InventoryOptions, surroundings: Surroundings) {
    this.#options = options;
    this.#surroundings = surroundings;
    this.#store = new Store(options.indexes ?? {});
    this.#synced.promise.catch(() => undefined); // for those who ask
  }

  /** Whether it has ever been complete. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Whether it has what vCenter has, as far as that was told. */
  get isLive(): boolean {
    return this.#isLive;
  }

  get size(): number {
    return this.#store.size;
  }

  /** Once it is complete for the first time. @throws StoppedError where the client is stopped before */
  synced(signal?: AbortSignal): Promise<void> {
    return unlessAborted(this.#synced.promise, signal);
  }

  get<T extends ManagedType>(ref: Ref<T>): Known<T> | undefined {
    const object = this.#store.get(ref);
    return object !== undefined && isKnown(object, ref.type) ? object : undefined;
  }

  list<T extends ManagedType>(type: T): readonly Known<T>[] {
    return this.#store.ofType(type).filter((object) => isKnown(object, type));
  }

  /** Those of a type that an index finds under a key. */
  by<T extends ManagedType>(type: T, index: string, key: string): readonly Known<T>[] {
    return this.#store.by(index, key).filter((object) => isKnown(object, type));
  }

  /** Told of each change, after it is in here. @returns to be told no more */
  onChange(listener: (change: InventoryChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** @internal */
  async open(bound: Bound): Promise<Vim25['PropertyFilterSpec']> {
    const { viewManager, rootFolder } = bound.login.content;
    const { container = rootFolder, properties } = this.#options;
    if (viewManager === undefined)
      throw new FaultError('the inventory', 'NotSupported', {}, 'no view manager');
    const type = Object.keys(properties);
    const view = await this.#view.replace(bound, () =>
      bound.call('CreateContainerView', viewManager, { container, type, recursive: true }),
    );
    this.#seen = new Set();
    return viewSpec(view, properties);
  }

  apply(updates: readonly Vim25['ObjectUpdate'][]): void {
    for (const { kind, obj, changeSet } of updates) {
      if (kind === 'leave') this.#remove(obj);
      else this.#put(obj, changed(kind === 'enter' ? {} : this.#store.get(obj)?.properties, changeSet));
    }
  }

  settled(): void {
    const seen = this.#seen;
    this.#seen = undefined;
    if (seen !== undefined)
      for (const { ref } of [...this.#store.all()]) if (!seen.has(keyOf(ref))) this.#remove(ref);
    this.#isLive = true;
    this.#isSynced = true;
    this.#synced.resolve();
  }

  interrupted(error: unknown): void {
    this.#isLive = false;
    if (error instanceof StoppedError) this.#synced.reject(error);
  }

  resumed(): void {
    this.#isLive = this.#seen === undefined;
  }

  [Symbol.dispose](): void {
    this.#listeners.clear();
    this.#surroundings.feed.remove(this);
    void this.#view.destroy();
  }

  #put(ref: Ref, properties: Readonly<Record<string, unknown>>): void {
    this.#seen?.add(keyOf(ref));
    const before = this.#store.get(ref);
    if (before !== undefined && isEqual(before.properties, properties)) return;
    const object = { ref, properties };
    this.#store.set(object);
    this.#tell(before === undefined ? { kind: 'added', object } : { kind: 'changed', object, before });
  }

  #remove(ref: Ref): void {
    this.#seen?.delete(keyOf(ref));
    const object = this.#store.get(ref);
    if (object === undefined) return;
    this.#store.delete(ref);
    this.#tell({ kind: 'removed', object });
  }

  #tell(change: InventoryChange): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(change);
      } catch (error) {
        this.#surroundings.troubled?.(error); // a listener's own affair: the others are told as well
      }
    }
  }
}

/** The properties after a change. One that is told without a value is unset. */
function changed(
  before: Readonly<Record<string, unknown>> = {},
  changes: readonly Vim25['PropertyChange'][] = [],
): Readonly<Record<string, unknown>> {
  const after = { ...before };
  for (const { name, op, val } of changes) {
    if (val === undefined || op === 'remove' || op === 'indirectRemove') delete after[name];
    else after[name] = val;
  }
  return after;
}
