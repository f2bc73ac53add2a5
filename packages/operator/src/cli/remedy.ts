import { systemCode } from '@vmwright/core/errors';

const REMEDIES: ReadonlyMap<string, string> = new Map([
  [
    'CONNECTION',
    'check that the API server runs, and check the kubeconfig and its context (`kubectl cluster-info`)',
  ],
  ['UNAUTHORIZED', 'log in again, or choose another context with --context'],
  [
    'FORBIDDEN',
    'ask the administrator for the permission (`vmwright check` lists the permissions of the operator)',
  ],
]);

/**
 * Returns the text to append to an error message: the remedy if the connection or the login failed, or a permission is
 * missing. Empty for any other error.
 */
export function remedyFor(error: unknown): string {
  const remedy = REMEDIES.get(systemCode(error) ?? '');
  return remedy === undefined ? '' : `; ${remedy}`;
}
