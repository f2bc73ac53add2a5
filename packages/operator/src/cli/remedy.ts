import { systemCode } from '@vmwright/core/errors';

const REMEDIES: ReadonlyMap<string, string> = new Map([
  [
    'CONNECTION',
    'check that the API server runs, and the kubeconfig and its context (`kubectl cluster-info`)',
  ],
  ['UNAUTHORIZED', 'log in again, or choose another context with --context'],
  [
    'FORBIDDEN',
    'ask the administrator for the permission (`vmwright check` lists the permissions of the operator)',
  ],
]);

/** Returns the remedy to append to the message of a failed connection, login or permission; empty for any other error. */
export function remedyFor(error: unknown): string {
  const remedy = REMEDIES.get(systemCode(error) ?? '');
  return remedy === undefined ? '' : `; ${remedy}`;
}
