import { fieldAt } from '../apiserver/json.ts';
import { CLOUD } from '../cloud/simulated.ts';
import type { Sent } from '../scenario/traffic.ts';

/** Whether the request creates a server. */
export function isCreate({ origin, method }: Sent): boolean {
  return origin === CLOUD && method === 'POST';
}

/** Returns the id of the server that the request deletes; undefined for other requests. */
export function deletedId({ origin, method, path }: Sent): string | undefined {
  return origin === CLOUD && method === 'DELETE' ? path.split('/').at(-1) : undefined;
}

/** Returns the owner UID in a create request. */
export function requestedOwner({ body }: Sent): string {
  const content: unknown = JSON.parse(body ?? '{}');
  const uid = fieldAt(content, ['labels', 'vmwright.dev/uid']);
  return typeof uid === 'string' ? uid : '';
}
