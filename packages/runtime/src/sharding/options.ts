import type { World } from '@vmwright/core';
import type { LeaderElectionOptions } from '../election/options.ts';
import type { Work } from './held-shards.ts';
import type { ShardingClient } from './lease-store.ts';

/** Told of what happens, for metrics and logs. */
export interface ShardingObserver {
  /** How many of all shards this member holds. Told at each change; all 0 while it is no member. */
  owns(held: number, shards: number, members: number): void;
  /** A look at the leases, or a write, has failed; there will be others. */
  failed?(error: unknown): void;
}

export interface ShardingOptions extends Pick<LeaderElectionOptions, 'leaseMs' | 'renewMs' | 'retryMs'> {
  readonly world: Pick<World, 'now' | 'monotonic' | 'after' | 'random' | 'uuid'>;
  /** Needs the verbs get, list, create, patch and delete on leases in the namespace. */
  readonly client: ShardingClient;
  /** Of the leases. */
  readonly namespace: string;
  /** What the names of the leases begin with; the same for all replicas. */
  readonly name: string;
  /** Who this is, for people: the pod's name. */
  readonly identity: string;
  /**
   * Into how many parts the namespaces are divided: several times the number of replicas. A change takes effect when
   * all replicas have been stopped at the same time. @default 256
   */
  readonly shards?: number;
  readonly observer?: ShardingObserver;
}

/** What a controller needs to know of sharding. Keys are those of queues: `namespace/name`. */
export interface ShardOwnership {
  /** Whether work on this object may begin here. */
  owns(key: string): boolean;
  /** Begins work on an object; undefined when it is not ours. */
  begin(key: string): Work | undefined;
  /** Tells when objects have become ours. */
  onGained(listener: (isGained: (key: string) => boolean) => void): void;
}
