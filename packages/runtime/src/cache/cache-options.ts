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
   * Makes the objects of a namespace visible in the caches of several kinds at the same time, once all of these caches
   * have listed the namespace. @default each cache is independent
   */
  readonly shared?: SharedNamespaces;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Keeps `metadata` only, without spec, status and data. @default false */
  readonly metadataOnly?: boolean;
  /** Reduces an object before it is stored. Managed fields are always dropped. */
  readonly transform?: (object: T) => T;
  /**
   * Whether the kind may be missing in the cluster, because its CRD is not installed. Without the CRD, the cache syncs
   * with no objects (see `isServed`), and looks for the kind again every 15 to 45 seconds. @default false
   */
  readonly optional?: boolean;
  readonly indexers?: Readonly<Record<string, Indexer<T>>>;
  /**
   * How the first list is read: as the beginning of the watch (`watch`), or in pages (`pages`). In the API server,
   * `watch` needs less memory, and `pages` needs less CPU time. @default 'watch'
   */
  readonly initialList?: 'watch' | 'pages' | undefined;
  /**
   * Whether a namespace exists. Called when the API server forbids listing a namespace: the namespace may have been
   * deleted, and the program's RoleBinding with it. @default every namespace is assumed to exist
   */
  readonly namespaceExists?: (namespace: string) => Promise<boolean>;
  /**
   * Called with the errors of lists, watches, `transform`, indexers and subscribers. Lists and watches are retried. In
   * a cache of several namespaces, persistent failures are reported to `onListable` instead, and a 403 that may be
   * transient is not reported.
   */
  readonly onError?: (error: unknown) => void;
  /**
   * Called once when listing or watching one of several namespaces fails persistently (`isListable` is false), and once
   * when it succeeds again (`isListable` is true).
   */
  readonly onListable?: (namespace: string, isListable: boolean, error?: unknown) => void;
}
