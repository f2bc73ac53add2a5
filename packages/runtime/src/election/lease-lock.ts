import type { Clock } from '@vmwright/core';
import { versionOf } from '../cache/store.ts';
import { AlreadyExistsError, ConflictError, NotFoundError } from '../client/errors.ts';
import type { CallOptions, Draft } from '../client/options.ts';
import { Lease, type LeaseSpec } from '../kind/builtin/lease.ts';
import type { Kind } from '../kind/kind.ts';
import { keyOf, type ObjectRef } from '../kind/object.ts';
import { withTimeout } from './with-timeout.ts';

/** What an election needs of a client. */
export interface LeaseClient {
  get(kind: Kind<Lease>, ref: ObjectRef, options: CallOptions): Promise<Lease>;
  create(kind: Kind<Lease>, lease: Draft<Lease>, options: CallOptions): Promise<Lease>;
  /** Refused with a ConflictError when `metadata.resourceVersion` is not the stored one. */
  mergePatch(kind: Kind<Lease>, ref: ObjectRef, patch: object, options: CallOptions): Promise<Lease>;
}

export interface LeaseLockOptions {
  readonly clock: Clock;
  readonly client: LeaseClient;
  readonly lease: { readonly namespace: string; readonly name: string };
  readonly callMs: number;
  /** For a lease that is created. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/**
 * One lease on the server, read and written so that no write goes over a record that its writer has not seen: the
 * server compares resource versions, and of two creates refuses one.
 *
 * What was seen is forgotten with each write until its answer is here. A write without an answer may have been carried
 * out, or may be later: only a new read tells.
 */
export class LeaseLock {
  readonly #options: LeaseLockOptions;
  #observed: { readonly lease: Lease | undefined } | undefined;

  constructor(options: LeaseLockOptions) {
    this.#options = options;
  }

  /** As last seen, unless a write has gone unanswered since; asks the server where that is so. */
  async current(signal?: AbortSignal): Promise<Lease | undefined> {
    return this.#observed === undefined ? this.read(signal) : this.#observed.lease;
  }

  /** Of what was last seen; 0 for nothing. */
  get version(): number {
    return this.#observed?.lease === undefined ? 0 : versionOf(this.#observed.lease);
  }

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
   * Writes over what was last seen.
   * @returns false when the lease is another than that: nothing was written, or by an earlier try whose answer got lost
   * @throws what went wrong; whether it was written is unknown
   */
  async write(spec: LeaseSpec, signal?: AbortSignal): Promise<boolean> {
    const { client, lease: ref, labels } = this.#options;
    const seen = this.#observed;
    if (seen === undefined) throw new Error(`lease ${keyOf(ref)} is written unseen`);
    this.#observed = undefined;
    const { lease } = seen;
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
      // To a patch it says that the lease was deleted, to a create that there is no such namespace.
      if (error instanceof NotFoundError && lease !== undefined) return false;
      throw error;
    }
  }

  #call<T>(signal: AbortSignal | undefined, call: (options: CallOptions) => Promise<T>): Promise<T> {
    const { clock, lease, callMs } = this.#options;
    return withTimeout({ clock, lease: keyOf(lease), callMs }, signal, call);
  }
}
