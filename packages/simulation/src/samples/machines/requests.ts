import { isJson } from '../../apiserver/json.ts';
import { REMOTE } from '../../remote/remote.ts';
import type { Sent } from '../../scenario/traffic.ts';

/** Whether the request creates a machine. */
export function isCreate({ origin, method }: Sent): boolean {
  return origin === REMOTE && method === 'POST';
}

/** Returns the owner UID in a create request. */
export function ownerIn({ body }: Sent): string {
  const content: unknown = JSON.parse(body ?? '{}');
  const owner = isJson(content) ? content.owner : undefined;
  return isJson(owner) && typeof owner.uid === 'string' ? owner.uid : '';
}
