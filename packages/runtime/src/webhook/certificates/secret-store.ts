import type { Client } from '../../client/client.ts';
import { AlreadyExistsError, ConflictError, NotFoundError } from '../../client/errors.ts';
import { Secret } from '../../kind/builtin/secret.ts';
import type { ObjectRef } from '../../kind/object.ts';
import { type CertificateState, dataOf, stateIn } from './state.ts';

export type SecretClient = Pick<Client, 'get' | 'create' | 'mergePatch'>;

/** State that was read, with its version. Both are undefined if the Secret does not exist. */
export interface StoredState {
  readonly state: CertificateState | undefined;
  readonly resourceVersion: string | undefined;
}

/** Secret that stores the certificates shared by all replicas. If replicas write concurrently, the first write wins. */
export class SecretStore {
  readonly #client: SecretClient;
  readonly #ref: ObjectRef;

  constructor(client: SecretClient, ref: ObjectRef) {
    this.#client = client;
    this.#ref = ref;
  }

  async read(signal: AbortSignal): Promise<StoredState> {
    try {
      const { data, metadata } = await this.#client.get(Secret, this.#ref, { signal });
      return { state: stateIn(data), resourceVersion: metadata.resourceVersion };
    } catch (error) {
      if (error instanceof NotFoundError) return { state: undefined, resourceVersion: undefined };
      throw error;
    }
  }

  /** Writes the state. @returns false if the Secret was created, changed or deleted since it was read */
  async write(
    held: CertificateState,
    { resourceVersion }: StoredState,
    signal: AbortSignal,
  ): Promise<boolean> {
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
      const conflict =
        error instanceof AlreadyExistsError ||
        error instanceof ConflictError ||
        error instanceof NotFoundError;
      if (conflict) return false;
      throw error;
    }
  }
}
