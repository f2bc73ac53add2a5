import { systemCode } from '@vmwright/core/errors';

const REMEDIES: ReadonlyMap<string, string> = new Map([
  [
    'CONNECTION',
    'check that the API server runs, and the kubeconfig and its context (`kubectl cluster-info`)',
  ],
  ['UNAUTHORIZED', 'log in again, or choose another context with --context'],
  ['FORBIDDEN', 'ask the administrator for the permission (`vmwright check` lists those of the operator)'],
]);

/** Returns what to do about an error of the API server, to append to its message; empty for errors that contain it. */
export function remedyFor(error: unknown): string {
  const remedy = REMEDIES.get(systemCode(error) ?? '');
  return remedy === undefined ? '' : `; ${remedy}`;
}
