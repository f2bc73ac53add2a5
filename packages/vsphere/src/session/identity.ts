import { VcenterChangedError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import type { ManagedObjectReference, Vim25 } from '../vim25/vim25.generated.ts';

const INSTANCE_UUID = 'content.about.instanceUuid';
const CURRENT_SESSION = 'currentSession';

/**
 * Returns a filter that reads the server's identity and the current session with one request. After a DNS change, or
 * behind a load balancer, two requests can reach two servers. Only a response that contains both values proves which
 * vCenter issued the session.
 */
export function identitySpec(
  service: ManagedObjectReference,
  sessionManager: ManagedObjectReference,
): Vim25['PropertyFilterSpec'] {
  return {
    propSet: [
      { type: service.type, pathSet: [INSTANCE_UUID] },
      { type: sessionManager.type, pathSet: [CURRENT_SESSION] },
    ],
    objectSet: [{ obj: service }, { obj: sessionManager }],
  };
}

/**
 * Returns the identity of the vCenter that holds the session.
 * @throws FaultError `NOT_AUTHENTICATED` when the server that responded does not know the session
 */
export function identityIn(read: Vim25['RetrieveResult'] | undefined, key: string): string | undefined {
  const properties = new Map<string, unknown>();
  for (const { propSet } of read?.objects ?? [])
    for (const { name, val } of propSet ?? []) properties.set(name, val);
  const session = properties.get(CURRENT_SESSION);
  const isKnown = typeof session === 'object' && session !== null && 'key' in session && session.key === key;
  if (!isKnown)
    throw new FaultError('logging in', 'NotAuthenticated', {}, 'the server does not know the new session');
  const identity = properties.get(INSTANCE_UUID);
  return typeof identity === 'string' ? identity : undefined;
}

/** @throws VcenterChangedError when the server is not the expected vCenter; never throws if `expected` is undefined */
export function assertSameVcenter(expected: string | undefined, actual: string | undefined): void {
  if (expected !== undefined && expected !== actual) throw new VcenterChangedError(expected, actual);
}
