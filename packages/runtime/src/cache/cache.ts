import { messageOf } from '@vmwright/core';
import { ForbiddenError, NotFoundError } from '../client/errors.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import { type KubeObject, keyOf, type ObjectRef } from '../kind/object.ts';
import { byFields, byLabels, type Selects } from '../kind/selector.ts';
import { CacheEvent, type Subscriber } from './cache-event.ts';
import type { CacheOptions } from './cache-options.ts';
import { NamespacePartition } from './namespace-partition.ts';
import { Reflector } from './reflector.ts';
import { SharedNamespaces } from './shared-namespaces.ts';
import { type Change, type Indexer, Store, versionOf } from './store.ts';
import { leanObject, transformed } from './stored-object.ts';

/**
 * In-memory copy of all objects of a kind, or of those in some namespaces or with some labels, kept current by a watch.
 *
 * Guarantees:
 * - Once synced, it contains every object, and every later change eventually arrives. If it watches several namespaces,
 *   it syncs without those that cannot be listed (`unlistable`); their objects are added later as `initial` events.
 * - If the kind is optional and its CRD is not installed, the cache is synced and empty (`isServed`). When the CRD is
 *   removed, its objects are removed from the cache; when the CRD is installed, its objects are added.
 * - An object never goes back to an older version. Writes through the client of a reconcile's context are visible
 *   immediately (`onWrite`), so a reconcile never acts on a state older than its own last write.
 * - Readers get copies and cannot modify the cache.
 */
export class ObjectCache<T extends KubeObject> {
  readonly kind: Kind<T>;
  readonly #options: CacheOptions<T>;
  readonly #store = new Store<T>();
  readonly #subscribers = new Set<Subscriber<T>>();
  readonly #servedListeners: ((isServed: boolean) => void)[] = [];
  readonly #partitions: ReadonlyMap<string, NamespacePartition<T>>;
  readonly #shared: SharedNamespaces;
  readonly #synced = Promise.withResolvers<void>();
  /** Version up to which the watch has delivered every change, by watched namespace ('' for all namespaces). */
  readonly #observedVersions = new Map<string, number>();
  /** Version of the newest list that `refresh` has read, by watched namespace. The watch may be behind it. */
  readonly #refreshedVersions = new Map<string, number>();
  readonly #selects: Selects;
  #hasSynced = false;
  /** Whether the API server had the kind when a namespace was last listed. */
  readonly #servedIn = new Map<NamespacePartition<T>, boolean>();
  #isServed = true;

  constructor(options: CacheOptions<T>) {
    this.kind = options.kind;
    this.#options = options;
    const { labelSelector = '', fieldSelector = '' } = options;
    const [hasLabels, hasFields] = [byLabels(labelSelector), byFields(fieldSelector)];
    this.#selects = (object) => hasLabels(object) && hasFields(object);
    for (const [name, indexer] of Object.entries(options.indexers ?? {})) this.addIndex(name, indexer);
    if (options.namespaces?.length === 0)
      throw new Error(
        `the cache of ${resourceOf(options.kind)} has an empty list of namespaces; name one, or omit the list for all`,
      );
    const namespaces = new Set(options.namespaces);
    const publish = (objects: Iterable<T>) => {
      for (const object of objects) this.#notify(this.#store.put(keyOf(object.metadata), object), true);
    };
    const partition = (name: string) =>
      new NamespacePartition<T>(name, namespaces.size > 1 ? publish : undefined);
    this.#partitions =
      namespaces.size === 0
        ? new Map([['', new NamespacePartition<T>(undefined)]])
        : new Map([...namespaces].map((name) => [name, partition(name)]));
    this.#shared = options.shared ?? new SharedNamespaces();
    // Only a cache of several namespaces can leave out a namespace, so only such a cache is coordinated with the caches
    // of other kinds.
    if (namespaces.size > 1) this.#shared.join(this.#partitions, () => this.#checkSynced());
  }

  /** Lists and watches until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const partitions = [...this.#partitions.values()];
    await Promise.all(partitions.map((partition) => this.#reflector(partition).run(signal)));
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Whether the API server has the kind. Always true unless the kind is optional (`CacheOptions.optional`). */
  get isServed(): boolean {
    return this.#isServed;
  }

  /** Calls the listener whenever `isServed` changes. */
  onServedChange(listener: (isServed: boolean) => void): void {
    this.#servedListeners.push(listener);
  }

  /**
   * Namespaces that cannot be listed or watched at the moment; their objects are missing or stale. Always empty if the
   * cache watches a single namespace.
   */
  get unlistable(): readonly string[] {
    return [...this.#partitions].flatMap(([name, { isFailing }]) => (isFailing ? [name] : []));
  }

  /** Resolves when at least one namespace is listed, and each of the others is listed or known to be unlistable. */
  waitForSync(): Promise<void> {
    return this.#synced.promise;
  }

  get size(): number {
    return this.#store.size;
  }

  get(ref: ObjectRef | string): T | undefined {
    return this.#store.get(typeof ref === 'string' ? ref : keyOf(ref));
  }

  keys(): Iterable<string> {
    return this.#store.keys();
  }

  *list(): Generator<T, void, undefined> {
    for (const key of this.#store.keys()) yield* this.#existing(key);
  }

  *byIndex(index: string, value: string): Generator<T, void, undefined> {
    // Iterates over a copy: an object that is written during the iteration moves to the end and would be yielded twice.
    for (const key of [...this.#store.find(index, value)]) yield* this.#existing(key);
  }

  /** Returns the number of objects that an index lists under a value, in constant time. */
  countByIndex(index: string, value: string): number {
    return this.#store.count(index, value);
  }

  /** Adds an index and fills it with the cached objects. */
  addIndex(name: string, indexer: Indexer<T>): void {
    this.#store.addIndex(name, (object) =>
      this.#guarded(`the index "${name}" of`, object, () => [...indexer(object)], []),
    );
  }

  /**
   * Calls the subscriber with every cached object as an `initial` event, then with each change. Returns the function
   * that unsubscribes.
   */
  subscribe(subscriber: Subscriber<T>): () => void {
    this.#subscribers.add(subscriber);
    for (const key of this.#store.keys()) {
      const change = this.#store.asAdded(key);
      if (change !== undefined) subscriber(new CacheEvent(change, true));
    }
    return () => void this.#subscribers.delete(subscriber);
  }

  /**
   * Lists all objects again. When the promise resolves, the cache contains every change that was made before the call,
   * even if the watch lags.
   * @returns namespaces that exist and cannot be listed: their objects may be missing or stale
   */
  async refresh(signal: AbortSignal): Promise<readonly string[]> {
    const skipped: string[] = [];
    for (const [name, partition] of this.#partitions)
      if (!(await this.#refreshPartition(partition, signal))) skipped.push(name);
    return skipped;
  }

  /** Stores the response to a write, ahead of the watch. */
  onWrite(object: T): void {
    const key = keyOf(object.metadata);
    if (!this.#selects(object))
      this.#notify(this.#store.addTombstone(key, object.metadata.uid ?? '', versionOf(object)));
    else if (this.#accepts(key, object)) this.#notify(this.#store.put(key, this.#toStored(object)));
  }

  /** Removes a deleted object, ahead of the watch. */
  onDelete(ref: ObjectRef, uid: string): void {
    this.#notify(this.#store.addTombstone(keyOf(ref), uid));
  }

  async #relist(partition: NamespacePartition<T>, signal: AbortSignal): Promise<void> {
    const { client, kind } = this.#options;
    const keys = new Set<string>();
    let version = 0;
    for await (const page of client.pages(kind, { ...this.#selectionOf(partition), signal })) {
      for (const object of page.items) {
        const key = keyOf(object.metadata);
        keys.add(key);
        // An object is skipped if the watch has reported its deletion since the page was sent.
        if (this.#accepts(key, object)) this.#notify(this.#store.put(key, this.#toStored(object)));
      }
      version = Number(page.resourceVersion);
    }
    const { namespace = '' } = partition;
    this.#refreshedVersions.set(namespace, Math.max(version, this.#refreshedVersions.get(namespace) ?? 0));
    for (const change of this.#store.removeUnlisted(prefixOf(partition), keys, version)) this.#notify(change);
  }

  /** @returns whether the cache has all objects of the partition that existed at the moment of the call */
  async #refreshPartition(partition: NamespacePartition<T>, signal: AbortSignal): Promise<boolean> {
    if (!partition.isPublished || partition.isFailing) return this.#isDeleted(partition);
    try {
      await this.#relist(partition, signal);
      return true;
    } catch (error) {
      // A namespace that has become forbidden is skipped. Its open watch continues, so the failure is recorded here.
      const isSkipped = error instanceof ForbiddenError && this.#partitions.size > 1;
      if (!isSkipped && !this.#isUnserved(error)) throw error;
      this.#failed(partition, error);
      return isSkipped ? this.#isDeleted(partition) : true;
    }
  }

  #selectionOf({ namespace }: NamespacePartition<T>) {
    const { labelSelector, fieldSelector, metadataOnly = false } = this.#options;
    return { namespace, labelSelector, fieldSelector, metadataOnly };
  }

  #reflector(partition: NamespacePartition<T>): Reflector<T> {
    const { world, client, kind, initialList = 'watch' } = this.#options;
    const { namespace } = partition;
    const store = () => partition.staged ?? this.#store;
    const notify = (change: Change | undefined) => this.#notifyPublished(partition, change);
    return new Reflector<T>({
      world,
      client,
      kind,
      selection: this.#selectionOf(partition),
      initialList,
      keyOf: ({ metadata }) => keyOf(metadata),
      onError: (error) => this.#failed(partition, error),
      sink: {
        put: (object) => {
          const key = keyOf(object.metadata);
          // The object is skipped if `refresh` has already read a newer list that lacks it: the object was deleted. The
          // watch lags and will report the deletion later.
          const isDeleted =
            !store().has(key) && versionOf(object) <= (this.#refreshedVersions.get(namespace ?? '') ?? 0);
          if (!isDeleted) notify(store().put(key, this.#toStored(object)));
        },
        remove: (object) => {
          notify(store().remove(keyOf(object.metadata), versionOf(object)));
          this.#store.clearTombstone(object.metadata.uid);
        },
        advance: (resourceVersion) => {
          this.#observedVersions.set(namespace ?? '', Number(resourceVersion));
          this.#succeeded(partition);
        },
        complete: (keys, resourceVersion) => {
          this.#complete(partition, keys, Number(resourceVersion));
          this.#setServed(partition, true);
        },
      },
    });
  }

  /** Called at the end of a list: only the objects in `keys` existed at this version. */
  #complete(partition: NamespacePartition<T>, keys: ReadonlySet<string>, version: number): void {
    const { namespace = '', staged } = partition;
    const store = staged ?? this.#store;
    const prefix = prefixOf(partition);
    for (const change of store.removeUnlisted(prefix, keys, version))
      this.#notifyPublished(partition, change);
    store.clearTombstones(prefix, keys, version);
    partition.listed();
    this.#succeeded(partition);
    if (!partition.isPublished) this.#shared.changed(namespace);
    this.#checkSynced();
  }

  /** Whether an error of a list or watch means that an optional kind is not installed. */
  #isUnserved(error: unknown): boolean {
    return this.#options.optional === true && error instanceof NotFoundError;
  }

  /** Empties the partition, because a kind that is not installed has no objects. */
  #unserved(partition: NamespacePartition<T>): void {
    this.#setServed(partition, false); // set before the cache syncs, because readers check `isServed` after the sync
    this.#complete(partition, new Set(), Number.POSITIVE_INFINITY);
  }

  /**
   * Stores whether the API server had the kind when a namespace was listed. The kind counts as served if one namespace
   * had it: the API server serves a kind in all namespaces or in none, and a 404 may arrive late. Failing namespaces do
   * not count.
   */
  #setServed(partition: NamespacePartition<T>, hasKind: boolean): void {
    this.#servedIn.set(partition, hasKind);
    const isServed = [...this.#servedIn].some(([{ isFailing }, hadKind]) => hadKind && !isFailing);
    if (this.#isServed === isServed) return;
    this.#isServed = isServed;
    for (const listener of this.#servedListeners) listener(isServed);
  }

  #succeeded(partition: NamespacePartition<T>): void {
    const { namespace = '' } = partition;
    if (!partition.succeeded()) return;
    this.#options.onListable?.(namespace, true);
    this.#shared.changed(namespace);
  }

  #failed(partition: NamespacePartition<T>, error: unknown): void {
    if (this.#isUnserved(error)) {
      this.#unserved(partition);
      return;
    }
    const { namespace = '' } = partition;
    // A cache with a single partition cannot leave this partition out, so it reports every failure as an error.
    const failure = this.#partitions.size > 1 ? partition.failed(error) : 'transient';
    if (failure === 'transient') this.#options.onError?.(error);
    if (partition.isFailing && error instanceof ForbiddenError) void this.#isDeleted(partition);
    if (failure !== 'persistent') return;
    this.#options.onListable?.(namespace, false, error);
    this.#shared.changed(namespace);
  }

  /**
   * Returns whether a namespace that cannot be listed was deleted. Removes the objects of a deleted namespace from the
   * cache if its partition is still failing.
   */
  async #isDeleted(partition: NamespacePartition<T>): Promise<boolean> {
    const { namespaceExists } = this.#options;
    const { namespace } = partition;
    if (namespaceExists === undefined || namespace === undefined) return false;
    // If the check fails, assume that the namespace exists.
    if (await namespaceExists(namespace).catch(() => true)) return false;
    // The objects are kept while the partition is not failing: either the namespace was created again and listed, or
    // its failures do not count as persistent yet.
    if (partition.isFailing) this.#clear(partition);
    return true;
  }

  #clear(partition: NamespacePartition<T>): void {
    const store = partition.staged ?? this.#store;
    for (const change of store.removeUnlisted(prefixOf(partition), new Set(), Number.POSITIVE_INFINITY))
      this.#notifyPublished(partition, change);
  }

  /**
   * Resolves `waitForSync` once every namespace is published (visible to readers) or excluded (cannot be listed), and
   * at least one is published.
   */
  #checkSynced(): void {
    if (this.#hasSynced) return;
    const partitions = [...this.#partitions];
    const isSettled = ([name, { isPublished }]: [string, NamespacePartition<T>]) =>
      isPublished || this.#shared.isExcluded(name);
    if (!partitions.every(isSettled) || !partitions.some(([, { isPublished }]) => isPublished)) return;
    this.#hasSynced = true;
    this.#synced.resolve();
  }

  /**
   * Notifies subscribers unless the partition is staged, that is, not visible to readers yet. Objects of a staged
   * partition are reported when it is published.
   */
  #notifyPublished({ staged }: NamespacePartition<T>, change: Change | undefined): void {
    if (staged === undefined) this.#notify(change);
  }

  #notify(change: Change | undefined, initial = !this.#hasSynced): void {
    if (change === undefined) return;
    for (const subscriber of this.#subscribers) {
      try {
        subscriber(new CacheEvent(change, initial));
      } catch (error) {
        // A bug in one subscriber must not stop the others or the watch.
        const message = `a subscriber failed on a change of ${resourceOf(this.kind)} ${change.key}: ${messageOf(error)}`;
        this.#options.onError?.(new Error(message, { cause: error }));
      }
    }
  }

  /**
   * Returns whether the response to a write or a list may be stored. If the object is not cached and the watch or a
   * newer list has passed its version, the object was deleted: the response arrived late and must not restore it.
   */
  #accepts(key: string, object: T): boolean {
    if (this.#store.has(key)) return true;
    const { namespaces } = this.#options;
    const { namespace = '' } = object.metadata;
    if (namespaces !== undefined && !namespaces.includes(namespace)) return false;
    // The object of a staged namespace becomes visible later, together with all other objects of the namespace.
    if (this.#partitions.get(namespace)?.staged !== undefined) return false;
    const watched = namespaces === undefined ? '' : namespace;
    const versions = [this.#observedVersions.get(watched) ?? 0, this.#refreshedVersions.get(watched) ?? 0];
    return versionOf(object) > Math.max(...versions);
  }

  #toStored(object: T): T {
    const lean = leanObject(object, this.#options);
    return this.#guarded('the transform of', lean, () => transformed(lean, this.#options), lean);
  }

  /** Calls a function that the program provides. If it throws, reports the error and returns `fallback`. */
  #guarded<R>(what: string, object: T, act: () => R, fallback: R): R {
    try {
      return act();
    } catch (error) {
      const where = `${resourceOf(this.kind)} ${keyOf(object.metadata)}`;
      this.#options.onError?.(new Error(`${what} ${where} failed: ${messageOf(error)}`, { cause: error }));
      return fallback;
    }
  }

  *#existing(key: string): Generator<T, void, undefined> {
    const object = this.#store.get(key);
    if (object !== undefined) yield object;
  }
}

/** Returns the common prefix of a partition's keys; empty if the partition covers all namespaces. */
function prefixOf({ namespace }: { readonly namespace: string | undefined }): string {
  return namespace === undefined ? '' : `${namespace}/`;
}
