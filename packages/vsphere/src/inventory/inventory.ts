import { unlessAborted } from '@vmwright/core';
import { StoppedError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import {
  isOfType,
  listsSpec,
  type ManagedObject,
  type ManagedType,
  type ObjectList,
  type Ref,
  type TypedManagedObject,
  viewSpec,
} from '../properties/properties.ts';
import type { PropertyWatcher } from '../property-watcher/property-watcher.ts';
import { SessionView } from '../property-watcher/session-view.ts';
import type { PropertySubscriber } from '../property-watcher/subscriber.ts';
import type { BoundSession } from '../session/session-client.ts';
import type { Properties, Vim25 } from '../vim25/vim25.generated.ts';
import { isEqual } from './equal.ts';
import { type Indexes, keyOf, Store } from './store.ts';

/** Property paths to keep, by object type. */
export type PropertyPaths = { readonly [T in ManagedType]?: readonly (keyof Properties[T] & string)[] };

export interface InventoryOptions {
  readonly properties: PropertyPaths;
  /** Watches only objects below this object. @default the whole vCenter */
  readonly container?: Ref;
  /**
   * Returns the lists of objects to watch instead of the objects below `container`. Needed for objects that are not in
   * a container, such as scheduled tasks. Called whenever the watch starts over.
   * @default the objects below `container`
   */
  readonly lists?: (content: Vim25['ServiceContent']) => readonly ObjectList[];
  /**
   * Called with each property value before it is stored. Returns the part of it to keep in memory.
   * @default all of it
   */
  readonly reduce?: (path: string, value: unknown) => unknown;
  /** Index functions by index name. Each returns the key of an object, or undefined to leave it out of the index. */
  readonly indexes?: Indexes;
}

interface InventoryDependencies {
  readonly watcher: Pick<PropertyWatcher, 'remove'>;
  readonly onError?: ((error: unknown) => void) | undefined;
}

export type InventoryChange =
  | { readonly kind: 'added' | 'removed'; readonly object: ManagedObject }
  | { readonly kind: 'changed'; readonly object: ManagedObject; readonly before: ManagedObject };

/**
 * In-memory copy of objects in vCenter, updated as they change there.
 *
 * Flow: the inventory first loads all objects, and then applies changes. While vCenter is unreachable, the inventory
 * keeps its last state, and `isLive` is false. When vCenter is reachable again, objects that were deleted in between
 * are reported as removed.
 *
 * Guarantees: objects are never changed in place. Listeners are called only when an object differs from its previous
 * state. A lost connection or session removes nothing.
 */
export class Inventory implements PropertySubscriber, Disposable {
  readonly #options: InventoryOptions;
  readonly #dependencies: InventoryDependencies;
  readonly #store: Store;
  readonly #view = new SessionView();
  readonly #listeners = new Set<(change: InventoryChange) => void>();
  readonly #livenessListeners = new Set<() => void>();
  readonly #synced = Promise.withResolvers<void>();
  /**
   * Objects that were reported since the filter was opened. `onSynced` removes the objects that are not in this set.
   * Undefined once synced.
   */
  #seen: Set<string> | undefined;
  #isSynced = false;
  #isLive = false;
  #interruption: unknown;

  constructor(options: InventoryOptions, dependencies: InventoryDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#store = new Store(options.indexes ?? {});
    this.#synced.promise.catch(() => undefined); // avoids an unhandled rejection; callers of `synced` get the error
  }

  /** Whether all objects have been loaded at least once. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Whether the inventory is complete and receives changes. False while the watch is interrupted. */
  get isLive(): boolean {
    return this.#isLive;
  }

  /** Error that interrupted the watch; undefined while the inventory is live. */
  get interruption(): unknown {
    return this.#interruption;
  }

  get size(): number {
    return this.#store.size;
  }

  /**
   * Resolves when all objects are loaded for the first time.
   * @throws StoppedError when the client is stopped before that
   */
  synced(signal?: AbortSignal): Promise<void> {
    return unlessAborted(this.#synced.promise, signal);
  }

  get<T extends ManagedType>(ref: Ref<T>): TypedManagedObject<T> | undefined {
    const object = this.#store.get(ref);
    return object !== undefined && isOfType(object, ref.type) ? object : undefined;
  }

  list<T extends ManagedType>(type: T): readonly TypedManagedObject<T>[] {
    return this.#store.ofType(type).filter((object) => isOfType(object, type));
  }

  /** Returns the objects of this type that have this key in the index. */
  by<T extends ManagedType>(type: T, index: string, key: string): readonly TypedManagedObject<T>[] {
    return this.#store.by(index, key).filter((object) => isOfType(object, type));
  }

  /** Calls the listener after each change. @returns a function that removes the listener */
  onChange(listener: (change: InventoryChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls the listener when `isLive` or `interruption` changes. @returns a function that removes the listener */
  onLiveness(listener: () => void): () => void {
    this.#livenessListeners.add(listener);
    return () => void this.#livenessListeners.delete(listener);
  }

  /** @internal */
  async openFilter(bound: BoundSession): Promise<Vim25['PropertyFilterSpec']> {
    const { lists, properties } = this.#options;
    if (lists === undefined) return this.#openView(bound);
    const { content } = bound.login;
    const { propSet, objectSet } = listsSpec(lists(content), properties);
    this.#seen = new Set();
    return {
      propSet,
      // vCenter rejects a filter without any object.
      objectSet: objectSet.length === 0 ? [{ obj: content.rootFolder, skip: true }] : objectSet,
      // The owner of one of the `lists` may already be deleted in vCenter. Without `reportMissingObjectsInResults`,
      // vCenter would then reject the whole filter.
      reportMissingObjectsInResults: true,
    };
  }

  async #openView(bound: BoundSession): Promise<Vim25['PropertyFilterSpec']> {
    const { viewManager, rootFolder } = bound.login.content;
    const { container = rootFolder, properties } = this.#options;
    if (viewManager === undefined)
      throw new FaultError('watching the inventory', 'NotSupported', {}, 'the server has no view manager');
    const type = Object.keys(properties);
    const view = await this.#view.replace(bound, () =>
      bound.call('CreateContainerView', viewManager, { container, type, recursive: true }),
    );
    this.#seen = new Set();
    return viewSpec(view, properties);
  }

  applyUpdates(updates: readonly Vim25['ObjectUpdate'][]): void {
    for (const { kind, obj, changeSet } of updates) {
      if (kind === 'leave') this.#remove(obj);
      else this.#put(obj, this.#changed(kind === 'enter' ? {} : this.#store.get(obj)?.properties, changeSet));
    }
  }

  onSynced(): void {
    const seen = this.#seen;
    this.#seen = undefined;
    if (seen !== undefined)
      for (const { ref } of [...this.#store.all()]) if (!seen.has(keyOf(ref))) this.#remove(ref);
    this.#isSynced = true;
    this.#setLive(true);
    this.#synced.resolve();
  }

  onInterrupted(error: unknown): void {
    this.#setLive(false, error);
    if (error instanceof StoppedError) this.#synced.reject(error);
  }

  onResumed(): void {
    if (this.#seen === undefined) this.#setLive(true);
  }

  [Symbol.dispose](): void {
    this.#listeners.clear();
    this.#livenessListeners.clear();
    this.#dependencies.watcher.remove(this);
    void this.#view.destroy();
  }

  #put(ref: Ref, properties: Readonly<Record<string, unknown>>): void {
    this.#seen?.add(keyOf(ref));
    const before = this.#store.get(ref);
    if (before !== undefined && isEqual(before.properties, properties)) return;
    const object = { ref, properties };
    this.#store.set(object);
    this.#notify(before === undefined ? { kind: 'added', object } : { kind: 'changed', object, before });
  }

  #remove(ref: Ref): void {
    this.#seen?.delete(keyOf(ref));
    const object = this.#store.get(ref);
    if (object === undefined) return;
    this.#store.delete(ref);
    this.#notify({ kind: 'removed', object });
  }

  /** Returns the properties after a change. A change without a value unsets the property. */
  #changed(
    before: Readonly<Record<string, unknown>> = {},
    changes: readonly Vim25['PropertyChange'][] = [],
  ): Readonly<Record<string, unknown>> {
    const { reduce } = this.#options;
    const after = { ...before };
    for (const { name, op, val } of changes) {
      if (val === undefined || op === 'remove' || op === 'indirectRemove') delete after[name];
      else after[name] = reduce === undefined ? val : reduce(name, val);
    }
    return after;
  }

  #setLive(isLive: boolean, interruption?: unknown): void {
    if (this.#isLive === isLive && this.#interruption === interruption) return;
    this.#isLive = isLive;
    this.#interruption = interruption;
    this.#call(this.#livenessListeners, undefined);
  }

  #notify(change: InventoryChange): void {
    this.#call(this.#listeners, change);
  }

  #call<T>(listeners: ReadonlySet<(argument: T) => void>, argument: T): void {
    for (const listener of [...listeners]) {
      try {
        listener(argument);
      } catch (error) {
        this.#dependencies.onError?.(error); // not rethrown: the other listeners must still be called
      }
    }
  }
}
