import type { World } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { SharedNamespaces } from './shared-namespaces.ts';
import type { Indexer } from './store.ts';

export interface CacheOptions<T extends KubeObject> {
  readonly world: World;
  readonly client: Pick<Client, 'watch' | 'pages'>;
  readonly kind: Kind<T>;
  /**
   * Namespaces to watch. If there are several, the cache leaves out a namespace while it cannot be listed.
   * @default all
   */
  readonly namespaces?: readonly string[];
  /**
   * Coordinates this cache with the caches of other kinds: once all caches have listed a namespace, its objects become
   * visible in all of them at the same time. @default each cache is independent
   */
  readonly shared?: SharedNamespaces;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Keeps `metadata` only, without spec, status and data. @default false */
  readonly metadataOnly?: boolean;
  /** Reduces an object before it is stored. Managed fields are always dropped. */
  readonly transform?: (object: T) => T;
  /**
   * Whether the cluster may lack the kind, because its CRD is not installed. Without the kind, the cache syncs with no
   * objects (see `isServed`). It looks for the kind again at least every 30 seconds. @default false
   */
  readonly optional?: boolean;
  readonly indexers?: Readonly<Record<string, Indexer<T>>>;
  /**
   * How the first list is read. `watch` streams it as the beginning of the watch and needs less memory in the API
   * server; `pages` reads it in pages and needs less CPU time there. @default 'watch'
   */
  readonly initialList?: 'watch' | 'pages' | undefined;
  /**
   * Whether a namespace exists. Called when the API server forbids listing a namespace: the namespace may have been
   * deleted, and the program's RoleBinding with it. @default every namespace is assumed to exist
   */
  readonly namespaceExists?: (namespace: string) => Promise<boolean>;
  /**
   * Called with the errors of lists and watches, which are retried, and of `transform`, indexers and subscribers. If
   * there are several namespaces, persistent failures are reported to `onListable` instead, and 403 responses that may
   * be transient are not reported.
   */
  readonly onError?: (error: unknown) => void;
  /**
   * Called once when listing or watching one of several namespaces fails persistently (`isListable` is false), and once
   * when it succeeds again (`isListable` is true).
   */
  readonly onListable?: (namespace: string, isListable: boolean, error?: unknown) => void;
}
