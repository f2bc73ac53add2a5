import type { Clock } from '@vmwright/core';
import { versionOf } from '../cache/store.ts';
import { AlreadyExistsError, ConflictError, NotFoundError } from '../client/errors.ts';
import type { CallOptions, Draft } from '../client/options.ts';
import { Lease, type LeaseSpec } from '../kind/builtin/lease.ts';
import type { Kind } from '../kind/kind.ts';
import { keyOf, type ObjectRef } from '../kind/object.ts';
import { withTimeout } from './with-timeout.ts';

/** The calls of a client that an election makes. */
export interface LeaseClient {
  get(kind: Kind<Lease>, ref: ObjectRef, options: CallOptions): Promise<Lease>;
  create(kind: Kind<Lease>, lease: Draft<Lease>, options: CallOptions): Promise<Lease>;
  /** Fails with a ConflictError if `metadata.resourceVersion` is not the stored version. */
  mergePatch(kind: Kind<Lease>, ref: ObjectRef, patch: object, options: CallOptions): Promise<Lease>;
}

export interface LeaseLockOptions {
  readonly clock: Clock;
  readonly client: LeaseClient;
  readonly lease: { readonly namespace: string; readonly name: string };
  /** Timeout of one call in milliseconds. */
  readonly callMs: number;
  /** Labels that the Lease gets when this process creates it. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/**
 * Reads and writes one Lease. A process never overwrites a record that it has not read: the API server compares the
 * resource version of each update, and rejects the second of two creates.
 *
 * Each write drops the last observed lease, and the response replaces it. If the response is lost, the API server may
 * have executed the write or may execute it later, so the lease must be read again.
 */
export class LeaseLock {
  readonly #options: LeaseLockOptions;
  #observed: { readonly lease: Lease | undefined } | undefined;

  constructor(options: LeaseLockOptions) {
    this.#options = options;
  }

  /**
   * Returns the last observed lease. Reads the lease from the server if it was never read, or if the last read or write
   * failed.
   */
  async current(signal?: AbortSignal): Promise<Lease | undefined> {
    return this.#observed === undefined ? this.read(signal) : this.#observed.lease;
  }

  /** Resource version of the last observed lease; 0 if there is none. */
  get version(): number {
    return this.#observed?.lease === undefined ? 0 : versionOf(this.#observed.lease);
  }

  /** Reads the lease from the server; undefined if it does not exist. */
  async read(signal?: AbortSignal): Promise<Lease | undefined> {
    const { client, lease: ref } = this.#options;
    this.#observed = undefined;
    const lease = await this.#call(signal, async (options) => {
      try {
        return await client.get(Lease, ref, options);
      } catch (error) {
        if (error instanceof NotFoundError) return undefined;
        throw error;
      }
    });
    this.#observed = { lease };
    return lease;
  }

  /**
   * Replaces the last observed record.
   * @returns false if the stored lease is not the last observed one. Either another process has changed it, or an
   *   earlier attempt of this call has written it and the response was lost
   * @throws the error of the call; the record may or may not have been written
   */
  async write(spec: LeaseSpec, signal?: AbortSignal): Promise<boolean> {
    const { client, lease: ref, labels } = this.#options;
    const observed = this.#observed;
    if (observed === undefined) throw new Error(`lease ${keyOf(ref)} must be read before it is written`);
    this.#observed = undefined;
    const { lease } = observed;
    try {
      const written = await this.#call(signal, (options) => {
        if (lease === undefined)
          return client.create(Lease, { metadata: { ...ref, ...(labels && { labels }) }, spec }, options);
        const { resourceVersion } = lease.metadata;
        return client.mergePatch(Lease, ref, { metadata: { resourceVersion }, spec }, options);
      });
      this.#observed = { lease: written };
      return true;
    } catch (error) {
      if (error instanceof ConflictError || error instanceof AlreadyExistsError) return false;
      // A 404 for a patch means that the lease was deleted; for a create, that the namespace does not exist.
      if (error instanceof NotFoundError && lease !== undefined) return false;
      throw error;
    }
  }

  #call<T>(signal: AbortSignal | undefined, call: (options: CallOptions) => Promise<T>): Promise<T> {
    const { clock, lease, callMs } = this.#options;
    return withTimeout({ clock, lease: keyOf(lease), callMs }, signal, call);
  }
}
