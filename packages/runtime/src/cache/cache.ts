import { messageOf, type World } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import { type KubeObject, keyOf, type ObjectRef } from '../kind/object.ts';
import { byFields, byLabels, type Selects } from '../kind/selector.ts';
import { NamespacePartition } from './namespace-partition.ts';
import { Reflector } from './reflector.ts';
import { SharedNamespaces } from './shared-namespaces.ts';
import { type Change, type Indexer, parseObject, Store, versionOf } from './store.ts';

/** All that an object has in a cache of metadata. */
const METADATA_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

export interface CacheOptions<T extends KubeObject> {
  readonly world: World;
  readonly client: Pick<Client, 'watch' | 'pages'>;
  readonly kind: Kind<T>;
  /** Of several, one that cannot be listed is left out until it can be. @default all */
  readonly namespaces?: readonly string[];
  /** With whom namespaces are shared: one comes in when it is listed by all. @default nobody */
  readonly shared?: SharedNamespaces;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Keep names, labels, owners and the like, and no content. @default false */
  readonly metadataOnly?: boolean;
  /** What is kept of an object. Managed fields are never kept. */
  readonly transform?: (object: T) => T;
  readonly indexers?: Readonly<Record<string, Indexer<T>>>;
  /** Told of each failure to watch; the cache goes on. */
  readonly onError?: (error: unknown) => void;
  /** Told once when one of several namespaces cannot be listed or watched, not at each try, and when it can be again. */
  readonly onListable?: (namespace: string, is: boolean, error?: unknown) => void;
}

/** A change of the cache, as one subscriber sees it. Objects are his own copies, made when first asked for. */
export class CacheEvent<T extends KubeObject> {
  readonly type: Change['type'];
  readonly key: string;
  /** Part of the first complete list, not news. */
  readonly initial: boolean;
  /** The resource version, as a number. */
  readonly version: number;
  /** Whether `before` is another object of the same name, which was deleted without a `removed` event of its own. */
  readonly replaces: boolean;
  readonly #before: string | undefined;
  readonly #after: string | undefined;

  constructor({ type, key, before, after, version, replaces = false }: Change, initial: boolean) {
    this.type = type;
    this.key = key;
    this.initial = initial;
    this.version = version;
    this.replaces = replaces;
    this.#before = before;
    this.#after = after;
  }

  /** Its newest state; of one that is removed, the last known. */
  get object(): T {
    return parseObject(this.#after ?? this.#before ?? '');
  }

  get before(): T | undefined {
    return this.#before === undefined ? undefined : parseObject(this.#before);
  }
}

export type Subscriber<T extends KubeObject> = (event: CacheEvent<T>) => void;

/**
 * All objects of a kind (or those of some namespaces or labels), kept current by one watch.
 *
 * Guarantees:
 * - once synced, it has every object, and every later change reaches it in the end; but of several namespaces, those
 *   that cannot be listed (`unlistable`) are not waited for, and come in as a whole later: added, and initial
 * - an object never goes back to an older version; what was written through the manager's client is there at once
 *   (`written`), so a reconcile never acts on a state older than its own last write
 * - whoever reads gets copies: nobody can change what is cached
 */
export class ObjectCache<T extends KubeObject> {
  readonly kind: Kind<T>;
  readonly #options: CacheOptions<T>;
  readonly #store = new Store<T>();
  readonly #subscribers = new Set<Subscriber<T>>();
  readonly #partitions: ReadonlyMap<string, NamespacePartition<T>>;
  readonly #shared: SharedNamespaces;
  readonly #synced = Promise.withResolvers<void>();
  /** By namespace watched ('' for all): the version up to which the watch has told of everything. */
  readonly #observedVersions = new Map<string, number>();
  readonly #selects: Selects;
  #hasSynced = false;

  constructor(options: CacheOptions<T>) {
    this.kind = options.kind;
    this.#options = options;
    const { labelSelector = '', fieldSelector = '' } = options;
    const [hasLabels, hasFields] = [byLabels(labelSelector), byFields(fieldSelector)];
    this.#selects = (object) => hasLabels(object) && hasFields(object);
    for (const [name, indexer] of Object.entries(options.indexers ?? {})) this.addIndex(name, indexer);
    if (options.namespaces?.length === 0)
      throw new Error(
        `${resourceOf(options.kind)} would be cached in no namespace; name one, or leave them out for all`,
      );
    const namespaces = new Set(options.namespaces);
    const letIn = (objects: Iterable<T>) => {
      for (const object of objects) this.#notify(this.#store.put(keyOf(object.metadata), object), true);
    };
    const section = (name: string) =>
      new NamespacePartition<T>(name, namespaces.size > 1 ? letIn : undefined);
    this.#partitions =
      namespaces.size === 0
        ? new Map([['', new NamespacePartition<T>(undefined)]])
        : new Map([...namespaces].map((name) => [name, section(name)]));
    this.#shared = options.shared ?? new SharedNamespaces();
    // One alone is waited for, and waits for nobody.
    if (namespaces.size > 1) this.#shared.join(this.#partitions, () => this.#checkSynced());
  }

  /** Keeps it current until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const sections = [...this.#partitions.values()];
    await Promise.all(sections.map((section) => this.#reflector(section).run(signal)));
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Of several namespaces, those that cannot be listed or watched now: what it has of them is nothing, or old. */
  get unlistable(): readonly string[] {
    return [...this.#partitions].flatMap(([name, { isFailing }]) => (isFailing ? [name] : []));
  }

  /** Resolves when all that was there at the start is in, but for namespaces that cannot be listed. */
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
    // A copy: what is written meanwhile goes to the end of an index, and would come again.
    for (const key of [...this.#store.find(index, value)]) yield* this.#existing(key);
  }

  /** Number of objects that an index has under this value; takes the same time for any number. */
  countByIndex(index: string, value: string): number {
    return this.#store.count(index, value);
  }

  /** Adds an index, also to what is there. */
  addIndex(name: string, indexer: Indexer<T>): void {
    this.#store.addIndex(name, (object) =>
      this.#guarded(`the index "${name}" of`, object, () => [...indexer(object)], []),
    );
  }

  /** First tells of all that is there, as initial, then of each change. */
  subscribe(subscriber: Subscriber<T>): () => void {
    this.#subscribers.add(subscriber);
    for (const key of this.#store.keys()) {
      const change = this.#store.asAdded(key);
      if (change !== undefined) subscriber(new CacheEvent(change, true));
    }
    return () => void this.#subscribers.delete(subscriber);
  }

  /** Takes in what the server has answered to a write, ahead of the watch. */
  onWrite(object: T): void {
    const key = keyOf(object.metadata);
    if (!this.#selects(object))
      this.#notify(this.#store.addTombstone(key, object.metadata.uid ?? '', versionOf(object)));
    else if (this.#accepts(key, object)) this.#notify(this.#store.put(key, this.#toStored(object)));
  }

  /** Takes in that an object is gone, ahead of the watch. */
  onDelete(ref: ObjectRef, uid: string): void {
    this.#notify(this.#store.addTombstone(keyOf(ref), uid));
  }

  #reflector(section: NamespacePartition<T>): Reflector<T> {
    const { world, client, kind, labelSelector, fieldSelector, metadataOnly = false } = this.#options;
    const { namespace } = section;
    const store = () => section.staged ?? this.#store;
    const tell = (change: Change | undefined) => {
      if (section.staged === undefined) this.#notify(change);
    };
    return new Reflector<T>({
      world,
      client,
      kind,
      selection: { namespace, labelSelector, fieldSelector, metadataOnly },
      keyOf: ({ metadata }) => keyOf(metadata),
      onError: (error) => this.#failed(section, error),
      sink: {
        put: (object) => tell(store().put(keyOf(object.metadata), this.#toStored(object))),
        remove: (object) => {
          tell(store().remove(keyOf(object.metadata), versionOf(object)));
          this.#store.clearTombstone(object.metadata.uid);
        },
        advance: (resourceVersion) => {
          this.#observedVersions.set(namespace ?? '', Number(resourceVersion));
          this.#succeeded(section);
        },
        complete: (keys, resourceVersion) => {
          const prefix = namespace === undefined ? '' : `${namespace}/`;
          for (const key of [...store().keys()]) {
            if (key.startsWith(prefix) && !keys.has(key)) tell(store().remove(key, Number(resourceVersion)));
          }
          store().clearTombstones(prefix, keys, Number(resourceVersion));
          section.listed();
          this.#succeeded(section);
          if (!section.isPublished) this.#shared.changed(namespace ?? '');
          this.#checkSynced();
        },
      },
    });
  }

  #succeeded(section: NamespacePartition<T>): void {
    const { namespace = '' } = section;
    if (!section.succeeded()) return;
    this.#options.onListable?.(namespace, true);
    this.#shared.changed(namespace);
  }

  #failed(section: NamespacePartition<T>, error: unknown): void {
    const { namespace = '' } = section;
    // One alone has nobody to go on without it: it is told at each try.
    const news = this.#partitions.size > 1 ? section.failed(error) : 'may pass';
    if (news === 'may pass') this.#options.onError?.(error);
    if (news !== 'lasts') return;
    this.#options.onListable?.(namespace, false, error);
    this.#shared.changed(namespace);
  }

  /** Something may have come in, or be waited for no longer. Without any namespace there is no cache. */
  #checkSynced(): void {
    if (this.#hasSynced) return;
    const sections = [...this.#partitions];
    const isThere = ([name, { isPublished }]: [string, NamespacePartition<T>]) =>
      isPublished || this.#shared.isExcluded(name);
    if (!sections.every(isThere) || !sections.some(([, { isPublished }]) => isPublished)) return;
    this.#hasSynced = true;
    this.#synced.resolve();
  }

  #notify(change: Change | undefined, initial = !this.#hasSynced): void {
    if (change === undefined) return;
    for (const subscriber of this.#subscribers) {
      try {
        subscriber(new CacheEvent(change, initial));
      } catch (error) {
        // One's bug must not cost the others the news, nor the watch its place.
        const what = `somebody could not take in a change of ${change.key}: ${messageOf(error)}`;
        this.#options.onError?.(new Error(what, { cause: error }));
      }
    }
  }

  /**
   * Whether an object that we wrote belongs here. One that is not there although the watch has told of everything up to
   * its version was deleted since: the answer to the write has come late, and must not bring it back.
   */
  #accepts(key: string, object: T): boolean {
    if (this.#store.has(key)) return true;
    const { namespaces } = this.#options;
    const { namespace = '' } = object.metadata;
    if (namespaces !== undefined && !namespaces.includes(namespace)) return false;
    if (this.#partitions.get(namespace)?.staged !== undefined) return false; // the watch brings it, with all others
    return versionOf(object) > (this.#observedVersions.get(namespaces === undefined ? '' : namespace) ?? 0);
  }

  #toStored(object: T): T {
    const { managedFields: _, ...metadata } = { managedFields: undefined, ...object.metadata };
    const lean = { ...object, metadata };
    if (this.#options.metadataOnly)
      for (const part of Object.keys(lean)) if (!METADATA_FIELDS.has(part)) Reflect.deleteProperty(lean, part);
    const { transform } = this.#options;
    if (transform === undefined) return lean;
    const transformed = () => {
      const kept = transform(lean);
      keyOf(kept.metadata); // throws where it is none
      return kept;
    };
    return this.#guarded('the transform of', lean, transformed, lean);
  }

  /** One object that a function of the program's stumbles over must not stop the watch of all others. */
  #guarded<R>(what: string, object: T, act: () => R, otherwise: R): R {
    try {
      return act();
    } catch (error) {
      const where = `${resourceOf(this.kind)} ${keyOf(object.metadata)}`;
      this.#options.onError?.(new Error(`${what} ${where} has a bug: ${messageOf(error)}`, { cause: error }));
      return otherwise;
    }
  }

  *#existing(key: string): Generator<T, void, undefined> {
    const object = this.#store.get(key);
    if (object !== undefined) yield object;
  }
}
