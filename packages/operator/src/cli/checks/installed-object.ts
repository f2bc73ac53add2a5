import { type Client, ForbiddenError, ignoreNotFound, type Kind, type KubeObject } from '@vmwright/runtime';
import type { CheckResult } from './result.ts';

/** Command that installs the objects of this version. */
export const APPLY = 'vmwright manifests | kubectl apply --server-side -f -';

/**
 * Checks an object that belongs to the installation of vmwright.
 * @param check called if the object exists
 * @param otherwise results if the object does not exist, or if reading it is forbidden
 */
export async function checkInstalled<T extends KubeObject>(
  object: {
    readonly client: Client;
    readonly kind: Kind<T>;
    readonly name: string;
    readonly signal: AbortSignal;
  },
  check: (found: T) => Promise<readonly CheckResult[]> | readonly CheckResult[],
  otherwise: { readonly missing: readonly CheckResult[]; readonly unreadable: CheckResult },
): Promise<readonly CheckResult[]> {
  const { client, kind, name, signal } = object;
  try {
    const found = await ignoreNotFound(client.get(kind, { name }, { signal }));
    return found === undefined ? otherwise.missing : await check(found);
  } catch (error) {
    if (!(error instanceof ForbiddenError)) throw error;
    return [otherwise.unreadable];
  }
}
