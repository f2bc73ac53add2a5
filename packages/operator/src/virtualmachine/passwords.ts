import { createHash } from 'node:crypto';
import { type Client, keyOf, NotFoundError, type ReconcileContext, Secret } from '@vmwright/runtime';
import type { Problem } from './problem.ts';
import type { VirtualMachine } from './resource.ts';
import { sha512Crypt } from './sha512-crypt.ts';
import { userNamesOf } from './user-names.ts';

/** Hashes of the users' passwords, in the order of the spec, or the reason why a password cannot be read. */
export type Passwords =
  | { readonly hashes: readonly (string | undefined)[] }
  | { readonly problem: Pick<Problem, 'reason' | 'message'> };

/** Context of the reconcile that reads passwords. */
type ReadContext = Pick<ReconcileContext<VirtualMachine>, 'signal' | 'now'> & {
  readonly client: Pick<Client, 'get'>;
};

/** Time for which hashes are used without reading the passwords again, once the cloud-init Secret exists. */
const FRESH_MS = 5 * 60_000;
const DEFAULT_KEY = 'password';
const SALT_CHARACTERS = 16;

/**
 * Reads and hashes the passwords of VirtualMachines. Remembers the hashes, because calculating one takes about 10 ms.
 * Plain passwords are never kept. `evict` drops the hashes of a deleted VirtualMachine.
 *
 * The operator does not watch users' Secrets. Until the Secret with the cloud-init data exists, every reconcile reads
 * the passwords. Afterwards, a reconcile reads them only if the spec has changed or the last read was five minutes ago.
 * That is enough, because the machine uses the passwords only at its first boot.
 */
export class PasswordReader {
  readonly #hashes = new Map<string, Map<string, string>>();
  /** Last result, by the UID of the VirtualMachine. */
  readonly #read = new Map<
    string,
    { readonly generation: number; readonly at: number; readonly passwords: Passwords }
  >();

  /**
   * Returns the last result while it is fresh; otherwise reads the passwords, with one request to the API server for
   * each `passwordSecretRef`.
   * @param hasSecret whether the Secret with the cloud-init data exists
   */
  async read(
    vm: VirtualMachine,
    hasSecret: boolean,
    { client, signal, now }: ReadContext,
  ): Promise<Passwords> {
    const { uid = '', generation = 0 } = vm.metadata;
    const last = this.#read.get(uid);
    const isFresh = last !== undefined && last.generation === generation && now() - last.at < FRESH_MS;
    if (isFresh && hasSecret) return last.passwords;
    const passwords = await this.#readAll(vm, client, signal);
    if ('problem' in passwords) this.#read.delete(uid);
    else this.#read.set(uid, { generation, at: now(), passwords });
    return passwords;
  }

  async #readAll(vm: VirtualMachine, client: Pick<Client, 'get'>, signal: AbortSignal): Promise<Passwords> {
    const { users = [] } = vm.spec;
    const { names } = userNamesOf(vm);
    const hashes: (string | undefined)[] = [];
    for (const [i, { plain_text_passwd, passwordSecretRef }] of users.entries()) {
      let password = plain_text_passwd;
      if (passwordSecretRef !== undefined) {
        const { name, key = DEFAULT_KEY } = passwordSecretRef;
        const found = await this.#fromSecret(vm, name, key, client, signal);
        if (typeof found === 'object') return { problem: found };
        password = found;
      }
      hashes.push(password === undefined ? undefined : this.#hashOf(vm, names[i] ?? '', password));
    }
    return { hashes };
  }

  evict(uid: string): void {
    this.#hashes.delete(uid);
    this.#read.delete(uid);
  }

  async #fromSecret(
    { metadata: { namespace } }: VirtualMachine,
    name: string,
    key: string,
    client: Pick<Client, 'get'>,
    signal: AbortSignal,
  ): Promise<string | Pick<Problem, 'reason' | 'message'>> {
    const where = keyOf({ namespace, name });
    try {
      const { data } = await client.get(Secret, { namespace, name }, { signal });
      const value = data?.[key];
      if (value !== undefined && value !== '') return Buffer.from(value, 'base64').toString();
      const message = `The Secret ${where} has no key "${key}" with a password (users[].passwordSecretRef). Add it`;
      return { reason: 'PasswordSecretMissing', message };
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      const message = `The Secret ${where} with a password does not exist (users[].passwordSecretRef). Create it`;
      return { reason: 'PasswordSecretMissing', message };
    }
  }

  #hashOf({ metadata: { uid = '' } }: VirtualMachine, user: string, password: string): string {
    const known = this.#hashes.get(uid) ?? new Map<string, string>();
    this.#hashes.set(uid, known);
    const key = createHash('sha256')
      .update(JSON.stringify([user, password]))
      .digest('hex');
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    const hashed = sha512Crypt(password, saltFor(uid, user));
    known.set(key, hashed);
    return hashed;
  }
}

/** Returns the salt, derived from UID and user name, so that every reconcile writes the same Secret. */
export function saltFor(uid: string, user: string): string {
  const digest = createHash('sha256').update(`${uid}/${user}`).digest('base64');
  return digest.replaceAll('+', '.').replaceAll('=', '').slice(0, SALT_CHARACTERS);
}
