import type { Client } from '../../client/client.ts';
import { AlreadyExistsError, ConflictError, NotFoundError } from '../../client/errors.ts';
import { Secret } from '../../kind/builtin/secret.ts';
import type { ObjectRef } from '../../kind/object.ts';
import { dataOf, type Held, heldIn } from './held.ts';

export type SecretClient = Pick<Client, 'get' | 'create' | 'mergePatch'>;

/** What was found; both undefined when there is no Secret. */
export interface Found {
  readonly held: Held | undefined;
  readonly resourceVersion: string | undefined;
}

/** The Secret by which replicas share what they hold. The first to write wins, and the others take what he wrote. */
export class SecretStore {
  readonly #client: SecretClient;
  readonly #ref: ObjectRef;

  constructor(client: SecretClient, ref: ObjectRef) {
    this.#client = client;
    this.#ref = ref;
  }

  async read(signal: AbortSignal): Promise<Found> {
    try {
      const { data, metadata } = await this.#client.get(Secret, this.#ref, { signal });
      return { held: heldIn(data), resourceVersion: metadata.resourceVersion };
    } catch (error) {
      if (error instanceof NotFoundError) return { held: undefined, resourceVersion: undefined };
      throw error;
    }
  }

  /** @returns false when another has written, or deleted it, since it was read */
  async write(held: Held, { resourceVersion }: Found, signal: AbortSignal): Promise<boolean> {
    const data = dataOf(held);
    const { namespace, name } = this.#ref;
    try {
      if (resourceVersion === undefined) {
        const metadata = { name, ...(namespace !== undefined && { namespace }) };
        await this.#client.create(Secret, { metadata, type: 'kubernetes.io/tls', data }, { signal });
      } else {
        await this.#client.mergePatch(Secret, this.#ref, { metadata: { resourceVersion }, data }, { signal });
      }
      return true;
    } catch (error) {
      const lost =
        error instanceof AlreadyExistsError ||
        error instanceof ConflictError ||
        error instanceof NotFoundError;
      if (lost) return false;
      throw error;
    }
  }
}
