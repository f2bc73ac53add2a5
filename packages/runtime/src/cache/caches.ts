import type { World } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import type { Write } from '../client/options.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { ObjectCache } from './cache.ts';
import type { CacheOptions } from './cache-options.ts';
import { SharedNamespaces } from './shared-namespaces.ts';

/** Options of a kind's cache, shared by all controllers that read the kind. */
export type KindCacheOptions<T extends KubeObject> = Omit<
  CacheOptions<T>,
  'world' | 'client' | 'kind' | 'namespaceExists' | 'onError' | 'onListable' | 'shared'
>;

export interface CachesOptions {
  readonly world: World;
  readonly client: Pick<Client, 'watch' | 'pages'>;
  /** Namespaces to cache for each kind, unless the kind's own options name others. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** Whether a namespace exists; see `CacheOptions`. */
  readonly namespaceExists?: (namespace: string) => Promise<boolean>;
  /** Called with the errors of a kind's cache; see `CacheOptions`. */
  readonly onError: (kind: Kind, error: unknown) => void;
  /**
   * Called once when listing or watching one of several namespaces fails persistently (`isListable` is false), and once
   * when it succeeds again (`isListable` is true).
   */
  readonly onListable?: (kind: Kind, namespace: string, isListable: boolean, error?: unknown) => void;
  /** Called when an optional kind turns out to be missing in the cluster, and when it is installed. */
  readonly onServed?: (kind: Kind, isServed: boolean) => void;
}

/** The members of a cache that do not depend on the kind. */
type AnyCache = Pick<
  ObjectCache<KubeObject>,
  'kind' | 'hasSynced' | 'isServed' | 'waitForSync' | 'run' | 'size' | 'unlistable'
>;

/** Caches of a program: one per kind, shared by all its controllers. */
export class Caches {
  readonly #options: CachesOptions;
  readonly #caches = new Map<string, AnyCache>();
  readonly #shared = new SharedNamespaces();
  #started: AbortSignal | undefined;
  readonly #running: Promise<void>[] = [];

  constructor(options: CachesOptions) {
    this.#options = options;
  }

  /**
   * Returns the cache of a kind, creating it on the first call.
   * @throws Error if options are given after the first call: existing readers would keep the old options
   */
  get<T extends KubeObject>(kind: Kind<T>, options?: KindCacheOptions<T>): ObjectCache<T> {
    const known = this.#caches.get(resourceOf(kind));
    if (known !== undefined) {
      if (options !== undefined)
        throw new Error(
          `the cache of ${resourceOf(kind)} already exists; pass its options before you add the first controller that reads it`,
        );
      if (isCacheOf(known, kind)) return known;
      throw new Error(`${resourceOf(kind)} is declared as two kinds; declare it once and import it`);
    }
    const { world, client, namespaces, namespaceExists, onError, onListable, onServed } = this.#options;
    // An empty name means all namespaces, so that a program can pass an environment variable that is not set.
    const isLimited = kind.scope === 'Namespaced' && namespaces !== undefined && !namespaces.includes('');
    const scope = isLimited ? { namespaces } : {};
    const cache = new ObjectCache<T>({
      world,
      client,
      kind,
      ...scope,
      ...options,
      shared: this.#shared,
      ...(namespaceExists && { namespaceExists }),
      onError: (error) => onError(kind, error),
      onListable: (namespace, isListable, error) => onListable?.(kind, namespace, isListable, error),
    });
    cache.onServedChange((isServed) => onServed?.(kind, isServed));
    this.#caches.set(resourceOf(kind), cache);
    if (this.#started !== undefined) this.#running.push(cache.run(this.#started));
    return cache;
  }

  /** Starts all caches, including those created later; resolves when the existing ones have synced. */
  async start(signal: AbortSignal): Promise<void> {
    this.#started = signal;
    for (const cache of this.#caches.values()) this.#running.push(cache.run(signal));
    await this.synced();
  }

  /** Resolves when the existing caches have synced. */
  async synced(): Promise<void> {
    await Promise.all([...this.#caches.values()].map((cache) => cache.waitForSync()));
  }

  /** Resolves when all caches have stopped, after the signal has aborted. */
  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Resources with a cache that has not synced yet. */
  get unsynced(): readonly string[] {
    return [...this.#caches].flatMap(([resource, { hasSynced }]) => (hasSynced ? [] : [resource]));
  }

  /**
   * Pairs of a resource and a namespace, such as `vms in b`, that cannot be listed or watched at the moment. A cache
   * syncs without such namespaces if it can list at least one other namespace.
   */
  get unlistable(): readonly string[] {
    return [...this.#caches].flatMap(([resource, { unlistable }]) =>
      unlistable.map((namespace) => `${resource} in ${namespace}`),
    );
  }

  /** Optional resources that the API server lacks, because their CRDs are not installed. */
  get unserved(): readonly string[] {
    return [...this.#caches].flatMap(([resource, { isServed }]) => (isServed ? [] : [resource]));
  }

  /** Makes a write visible in the kind's cache immediately, ahead of the watch. */
  onWrite<T extends KubeObject>({ kind, object, ref, uid }: Write<T>): void {
    const cache = this.#caches.get(resourceOf(kind));
    if (cache === undefined || !isCacheOf(cache, kind)) return;
    if (object !== undefined) cache.onWrite(object);
    else if (uid !== undefined) cache.onDelete(ref, uid);
  }
}

/** A kind's declaration determines the type of its objects, so the same declaration means the same type. */
function isCacheOf<T extends KubeObject>(cache: AnyCache, kind: Kind<T>): cache is ObjectCache<T> {
  return cache.kind === kind;
}
