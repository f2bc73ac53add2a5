import type { Fence, World } from '@vmwright/core';
import type { LeaderElectionOptions } from '../election/options.ts';
import type { Work } from './held-shards.ts';
import type { ShardingClient } from './lease-store.ts';

/** Receives sharding events, for metrics and logs. */
export interface ShardingObserver {
  /**
   * Called when the number of held shards, of all shards or of members changes. All three are 0 while this
   * replica is not a member.
   */
  owns(held: number, shards: number, members: number): void;
  /** Called when reading or writing the Leases fails. The request is retried. */
  failed?(error: unknown): void;
}

export interface ShardingOptions extends Pick<LeaderElectionOptions, 'leaseMs' | 'renewMs' | 'retryMs'> {
  readonly world: Pick<World, 'now' | 'monotonic' | 'after' | 'random' | 'uuid'>;
  /** Client that may get, list, create, patch and delete Leases in the namespace. */
  readonly client: ShardingClient;
  /** Namespace of the Leases. */
  readonly namespace: string;
  /** Prefix of the names of the Leases. It must be the same for all replicas. */
  readonly name: string;
  /** Human-readable name of this replica, such as the pod name. */
  readonly identity: string;
  /**
   * Number of shards into which the namespaces are divided; it should be several times the number of replicas. A change
   * takes effect only after all replicas were stopped at the same time.
   * @default 256
   */
  readonly shards?: number;
  readonly observer?: ShardingObserver;
}

/** Decides which objects this replica may act on. Keys are queue keys: `namespace/name`. */
export interface ShardOwnership {
  /** Shards that this replica owns at this moment. */
  readonly held: ReadonlySet<number>;
  /** Returns the shard of an object, a number that all replicas agree on. */
  shardOf(key: string): number;
  /**
   * Returns the fence of the current ownership of the object's shard; a closed fence if this replica does not own it.
   */
  fence(key: string): Fence;
  /** Returns whether work on an object may begin on this replica. */
  owns(key: string): boolean;
  /** Begins work on an object; returns undefined if this replica does not own it. */
  begin(key: string): Work | undefined;
  /** Calls the listener whenever this replica gains shards, with a predicate that selects the objects in them. */
  onGained(listener: (isGained: (key: string) => boolean) => void): void;
}
