import type { Logger, LogLevel, Tracer, World } from '@vmwright/core';
import type { Access } from '../access/access.ts';
import type { LeaderElectionOptions } from '../election/options.ts';
import type { EventGroup } from '../events/recorder.ts';
import type { StatusRoute } from '../server/server.ts';
import type { ShardingOptions } from '../sharding/options.ts';
import type { WebhookOptions } from '../webhook/webhooks.ts';

/** Leader-election settings of a manager. */
export interface ManagerElection extends Pick<LeaderElectionOptions, 'leaseMs' | 'renewMs' | 'retryMs'> {
  /** Name of the Lease. It must be the same for all replicas. */
  readonly name: string;
  /** Namespace of the Lease. @default the namespace of the manager's `access` */
  readonly namespace?: string;
  /** Human-readable prefix of the holder identity. @default the host name */
  readonly identity?: string;
  /** Whether to read the Lease before the caches sync; see `RunnableContext.hasFreshCaches`. @default false */
  readonly observesFirst?: boolean;
}

/** Sharding settings of a manager. */
export interface ManagerSharding
  extends Pick<ShardingOptions, 'name' | 'leaseMs' | 'renewMs' | 'retryMs' | 'shards'> {
  /** Namespace of the Leases. @default the namespace of the manager's `access` */
  readonly namespace?: string;
  /** Human-readable prefix of the holder identity. @default the host name */
  readonly identity?: string;
}

/** Coordination between replicas. With neither option, replicas do not coordinate, so only one replica may run. */
export type Replicas =
  | {
      /** Leader election: one replica acts, the others stand by. */
      readonly election?: ManagerElection;
      readonly sharding?: never;
    }
  | {
      /**
       * Sharding: each replica acts on some of the namespaces. Every replica watches and caches all namespaces, so that
       * it can take over others with warm caches. More replicas therefore divide the work, but not memory or watches.
       */
      readonly sharding?: ManagerSharding;
      readonly election?: never;
    };

export type ManagerOptions = CommonOptions & Replicas;

export interface CommonOptions {
  readonly world: World;
  readonly access: Access;
  /** Name of the program, used as field manager and user agent. */
  readonly name: string;
  /** @default a JSON logger that writes to standard error */
  readonly log?: Logger;
  /**
   * Namespaces to watch. If several are given and a kind cannot be listed in one of them (for example: 403), the
   * manager skips that namespace and retries. The other namespaces are not blocked. Until the list succeeds, objects of
   * the skipped namespace are not reconciled. An object that is missing from the cache may then still exist, unless its
   * namespace was deleted.
   * @default all namespaces
   */
  readonly namespaces?: readonly string[];
  /** Records a span for each reconcile and each run of a job, with its API requests. @default no tracing */
  readonly tracer?: Tracer | undefined;
  /** Server for `/healthz`, `/readyz`, `/metrics` and `/debug/…`. @default no server */
  readonly status?: StatusOptions;
  /** Webhook server; required by `admit` and `convert`. @default no server */
  readonly webhooks?: WebhookOptions;
  /** Timeout for the initial list of all kinds, in milliseconds. @default 120_000 */
  readonly syncTimeoutMs?: number;
  /** Time within which running reconciles must end when the manager stops, in milliseconds. @default 30_000 */
  readonly graceMs?: number;
  /**
   * API group in which events are written. The program needs the permission to create and patch events in this group.
   * Clients see the same events in both groups, core and `events.k8s.io`. @default 'events.k8s.io'
   */
  readonly eventGroup?: EventGroup;
}

/** Health, readiness and metrics endpoints of a manager. */
export interface StatusOptions {
  /** Port to listen on; 0 selects a free one. */
  readonly port: number;
  /**
   * Address to listen on.
   * - On a loopback address, `/metrics` and `/debug/…` need no authentication. Only `/debug/heap` is rejected.
   * - On any other address, `/debug/…` is rejected, and `/metrics` is served only with `openMetrics`.
   *
   * @default all addresses
   */
  readonly host?: string;
  /** Log level that `/debug/loglevel` shows and sets. @default the path is not served */
  readonly logLevel?: LogLevel;
  /** Whether to serve `/metrics` without authentication on any address. @default false */
  readonly openMetrics?: boolean;
  /** Additional routes, keyed by absolute path. @default none */
  readonly routes?: Readonly<Record<string, StatusRoute>>;
  /**
   * HTTPS server for `/metrics` and `/debug/…`. Clients need a Kubernetes bearer token with permission to `get` or
   * `put` the path. Requires `webhooks`, because the server uses the serving certificate of the webhooks. Also requires
   * the permissions that `rbacOf` adds with `secureStatus`. @default no HTTPS server
   */
  readonly secure?: { readonly port: number; readonly host?: string } | undefined;
}
