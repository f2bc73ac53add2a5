import type { World } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import type { Write } from '../client/options.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { type CacheOptions, ObjectCache } from './cache.ts';
import { SharedNamespaces } from './shared-namespaces.ts';

/** How a kind is cached; the same for all who use it. */
export type KindCacheOptions<T extends KubeObject> = Omit<
  CacheOptions<T>,
  'world' | 'client' | 'kind' | 'onError' | 'onListable' | 'shared'
>;

export interface CachesOptions {
  readonly world: World;
  readonly client: Pick<Client, 'watch' | 'pages'>;
  /** Namespaces that kinds are cached in, unless they say otherwise. @default all */
  readonly namespaces?: readonly string[] | undefined;
  readonly onError: (kind: Kind, error: unknown) => void;
  /** Told once when one of several namespaces cannot be listed or watched, not at each try, and when it can be again. */
  readonly onListable?: (kind: Kind, namespace: string, is: boolean, error?: unknown) => void;
}

/** As much of a cache as is the same for every kind. */
type AnyCache = Pick<
  ObjectCache<KubeObject>,
  'kind' | 'hasSynced' | 'waitForSync' | 'run' | 'size' | 'unlistable'
>;

/** The caches of a program: one for each kind, however many controllers use it. */
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
   * The cache of a kind, made when first asked for.
   * @throws when it is configured after that: who has it already would go on with something else
   */
  get<T extends KubeObject>(kind: Kind<T>, options?: KindCacheOptions<T>): ObjectCache<T> {
    const known = this.#caches.get(resourceOf(kind));
    if (known !== undefined) {
      if (options !== undefined)
        throw new Error(
          `the cache of ${resourceOf(kind)} is in use already; configure it before the first controller that reads it`,
        );
      if (isCacheOf(known, kind)) return known;
      throw new Error(`${resourceOf(kind)} is declared twice, as two kinds; declare it once and import it`);
    }
    const { world, client, namespaces, onError, onListable } = this.#options;
    // An empty name stands for all, as in an environment variable that is not set.
    const isLimited = kind.scope === 'Namespaced' && namespaces !== undefined && !namespaces.includes('');
    const scope = isLimited ? { namespaces } : {};
    const cache = new ObjectCache<T>({
      world,
      client,
      kind,
      ...scope,
      ...options,
      shared: this.#shared,
      onError: (error) => onError(kind, error),
      onListable: (namespace, is, error) => onListable?.(kind, namespace, is, error),
    });
    this.#caches.set(resourceOf(kind), cache);
    if (this.#started !== undefined) this.#running.push(cache.run(this.#started));
    return cache;
  }

  /** Starts all, also those that are asked for later; resolves when those there are have synced. */
  async start(signal: AbortSignal): Promise<void> {
    this.#started = signal;
    for (const cache of this.#caches.values()) this.#running.push(cache.run(signal));
    await this.synced();
  }

  /** Resolves when those there are have synced. */
  async synced(): Promise<void> {
    await Promise.all([...this.#caches.values()].map((cache) => cache.waitForSync()));
  }

  /** Resolves when all have ended, after the signal has aborted. */
  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }

  get unsynced(): readonly string[] {
    return [...this.#caches].flatMap(([resource, { hasSynced }]) => (hasSynced ? [] : [resource]));
  }

  /** What cannot be listed or watched now, and is not waited for: `vms in b`. */
  get unlistable(): readonly string[] {
    return [...this.#caches].flatMap(([resource, { unlistable }]) =>
      unlistable.map((namespace) => `${resource} in ${namespace}`),
    );
  }

  /** Makes a write visible at once to all who read the kind's cache. */
  onWrite<T extends KubeObject>({ kind, object, ref, uid }: Write<T>): void {
    const cache = this.#caches.get(resourceOf(kind));
    if (cache === undefined || !isCacheOf(cache, kind)) return;
    if (object !== undefined) cache.onWrite(object);
    else if (uid !== undefined) cache.onDelete(ref, uid);
  }
}

/** A kind's declaration stands for the type of its objects: the same declaration, the same type. */
function isCacheOf<T extends KubeObject>(cache: AnyCache, kind: Kind<T>): cache is ObjectCache<T> {
  return cache.kind === kind;
}
