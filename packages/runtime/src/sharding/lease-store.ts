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
import { LEDGER, type Ledger, ledgerOf, ledgerText, type Owners } from './ledger.ts';

/** Which sharding a lease is part of. */
export const LABEL = 'runtime.vmwright.dev/sharding';

/** What sharding needs of a client. */
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

/** All leases of a sharding as they were at one moment. */
export interface Look {
  readonly ledger: Ledger;
  /** That keeps the ledger. */
  readonly lease: Lease | undefined;
  /** By name. */
  readonly members: ReadonlyMap<string, Lease>;
}

/** The leases of a sharding in the API server: one for each member, and one with the ledger. */
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

  get ledgerName(): string {
    return keyOf(this.#ref);
  }

  /**
   * One list, which the server answers with what is stored and not from a cache that lags behind: who is a member and
   * who owns what are of the same moment, and that is after the request was sent.
   */
  async look(signal?: AbortSignal): Promise<Look> {
    const { client, namespace, name } = this.#options;
    const labelSelector = `${LABEL}=${name}`;
    const { items } = await this.#call(signal, (options) =>
      client.list(Lease, { ...options, namespace, labelSelector }),
    );
    const members = new Map(items.map((lease) => [lease.metadata.name, lease]));
    const lease = members.get(this.#ref.name);
    members.delete(this.#ref.name);
    return { ledger: ledgerOf(lease), lease, members };
  }

  /**
   * Writes the ledger over the one seen, and never over another.
   * @returns false when it has changed since: nothing was written
   * @throws what went wrong; whether it was written, or will be, is unknown
   */
  async write(seen: Lease | undefined, ledger: Owners | 'blank', signal?: AbortSignal): Promise<boolean> {
    const { clock, client } = this.#options;
    // Never as before: else the write might leave the version as it is, and an earlier one that is late would fit it.
    const renewTime = renewalAt(clock.now(), seen?.spec?.renewTime);
    const text = ledger === 'blank' ? null : ledgerText(ledger, renewTime);
    const spec = { renewTime };
    try {
      await this.#call(signal, (options) => {
        if (seen === undefined)
          return client.create(Lease, { metadata: { ...this.#ref, labels: this.labels }, spec }, options);
        const { uid, resourceVersion } = seen.metadata;
        const metadata = { uid, resourceVersion, annotations: { [LEDGER]: text } };
        return client.mergePatch(Lease, this.#ref, { metadata, spec }, options);
      });
      return true;
    } catch (error) {
      if (error instanceof ConflictError || error instanceof AlreadyExistsError) return false;
      if (error instanceof NotFoundError && seen !== undefined) return false;
      throw error;
    }
  }

  /** Removes the lease of a member that is gone, unless it has changed since. */
  async remove({ metadata }: Lease, signal?: AbortSignal): Promise<void> {
    const { uid, resourceVersion } = metadata;
    try {
      await this.#call(signal, (options) =>
        this.#options.client.delete(Lease, metadata, { ...options, uid, resourceVersion }),
      );
    } catch (error) {
      // Another was faster, or the member is back.
      if (!(error instanceof NotFoundError || error instanceof ConflictError)) throw error;
    }
  }

  #call<T>(signal: AbortSignal | undefined, call: (options: CallOptions) => Promise<T>): Promise<T> {
    const { clock, callMs } = this.#options;
    return withTimeout({ clock, lease: this.ledgerName, callMs }, signal, call);
  }
}
