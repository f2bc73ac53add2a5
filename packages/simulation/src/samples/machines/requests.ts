import { isJson } from '../../apiserver/json.ts';
import { REMOTE } from '../../remote/remote.ts';
import type { Sent } from '../../scenario/traffic.ts';

/** Whether a machine is asked for. */
export function isCreate({ origin, method }: Sent): boolean {
  return origin === REMOTE && method === 'POST';
}

/** The UID of the object for which a machine is asked for. */
export function ownerIn({ body }: Sent): string {
  const content: unknown = JSON.parse(body ?? '{}');
  const owner = isJson(content) ? content.owner : undefined;
  return isJson(owner) && typeof owner.uid === 'string' ? owner.uid : '';
}
