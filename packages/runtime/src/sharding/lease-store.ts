import type { Clock } from '@vmwright/core';
import { AlreadyExistsError, ConflictError, NotFoundError } from '../client/errors.ts';
import type { CallOptions, DeleteOptions, ListOptions } from '../client/options.ts';
import type { Page } from '../client/responses.ts';
import type { LeaseClient } from '../election/lease-lock.ts';
import { renewalAt } from '../election/record.ts';
import { withTimeout } from '../election/with-timeout.ts';
import { Lease } from '../kind/builtin/lease.ts';
import type { Kind } from '../kind/kind.ts';
import { keyOf, type ObjectRef } from '../kind/object.ts';
import { type Owners, SHARD_MAP_ANNOTATION, type ShardMap, shardMapOf, shardMapText } from './shard-map.ts';

/** Label of the Leases of all replicas that shard one program's work. Its value is `ShardingOptions.name`. */
export const LABEL = 'runtime.vmwright.dev/sharding';

/** Client methods that sharding needs. */
export interface ShardingClient extends LeaseClient {
  list(kind: Kind<Lease>, options: ListOptions): Promise<Page<Lease>>;
  delete(kind: Kind, ref: ObjectRef, options: DeleteOptions): Promise<void>;
}

export interface LeaseStoreOptions {
  readonly clock: Clock;
  readonly client: ShardingClient;
  readonly namespace: string;
  readonly name: string;
  readonly callMs: number;
}

/** Leases of all members, and the Lease with the shard map, at one moment. */
export interface Snapshot {
  readonly shardMap: ShardMap;
  /** Lease that stores the shard map. */
  readonly lease: Lease | undefined;
  /** Leases of the members by name. */
  readonly members: ReadonlyMap<string, Lease>;
}

/** Reads and writes the Leases for sharding: one per member, and one with the shard map. */
export class LeaseStore {
  readonly labels: Readonly<Record<string, string>>;
  readonly #options: LeaseStoreOptions;
  readonly #ref: { readonly namespace: string; readonly name: string };

  constructor(options: LeaseStoreOptions) {
    const { namespace, name } = options;
    this.#options = options;
    this.#ref = { namespace, name: `${name}-shards` };
    this.labels = { [LABEL]: name };
  }

  get shardMapName(): string {
    return keyOf(this.#ref);
  }

  /**
   * Reads all Leases with one list request. The request sets no resourceVersion, so the API server reads from etcd and
   * not from its watch cache. All Leases are therefore from one moment after the start of the request.
   */
  async read(signal?: AbortSignal): Promise<Snapshot> {
    const { client, namespace, name } = this.#options;
    const labelSelector = `${LABEL}=${name}`;
    const { items } = await this.#call(signal, (options) =>
      client.list(Lease, { ...options, namespace, labelSelector }),
    );
    const members = new Map(items.map((lease) => [lease.metadata.name, lease]));
    const lease = members.get(this.#ref.name);
    members.delete(this.#ref.name);
    return { shardMap: shardMapOf(lease), lease, members };
  }

  /**
   * Writes the shard map if it has not changed since it was read.
   * @returns false if the stored map is not the one that was read. Either another member has changed it, or an earlier
   *   attempt of this call has written it and the response was lost
   * @throws if the request fails; the API server may have processed it or may still process it
   */
  async write(seen: Lease | undefined, shardMap: Owners | 'blank', signal?: AbortSignal): Promise<boolean> {
    const { clock, client } = this.#options;
    // The renewTime always changes. Otherwise a write could keep the resourceVersion, and a delayed earlier write with
    // that version would still succeed.
    const renewTime = renewalAt(clock.now(), seen?.spec?.renewTime);
    const text = shardMap === 'blank' ? null : shardMapText(shardMap, renewTime);
    const spec = { renewTime };
    try {
      await this.#call(signal, (options) => {
        if (seen === undefined)
          return client.create(Lease, { metadata: { ...this.#ref, labels: this.labels }, spec }, options);
        const { uid, resourceVersion } = seen.metadata;
        const metadata = { uid, resourceVersion, annotations: { [SHARD_MAP_ANNOTATION]: text } };
        return client.mergePatch(Lease, this.#ref, { metadata, spec }, options);
      });
      return true;
    } catch (error) {
      if (error instanceof ConflictError || error instanceof AlreadyExistsError) return false;
      if (error instanceof NotFoundError && seen !== undefined) return false;
      throw error;
    }
  }

  /** Deletes the Lease of a member that is gone, unless the Lease has changed since it was read. */
  async remove({ metadata }: Lease, signal?: AbortSignal): Promise<void> {
    const { uid, resourceVersion } = metadata;
    try {
      await this.#call(signal, (options) =>
        this.#options.client.delete(Lease, metadata, { ...options, uid, resourceVersion }),
      );
    } catch (error) {
      // NotFound and Conflict are ignored: another member has deleted the Lease, or its owner has renewed it.
      if (!(error instanceof NotFoundError || error instanceof ConflictError)) throw error;
    }
  }

  #call<T>(signal: AbortSignal | undefined, call: (options: CallOptions) => Promise<T>): Promise<T> {
    const { clock, callMs } = this.#options;
    return withTimeout({ clock, lease: this.shardMapName, callMs }, signal, call);
  }
}
