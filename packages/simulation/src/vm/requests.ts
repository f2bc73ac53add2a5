import { fieldAt } from '../apiserver/json.ts';
import { CLOUD } from '../cloud/simulated.ts';
import type { Sent } from '../scenario/traffic.ts';

/** Whether a machine is asked for. */
export function isCreate({ origin, method }: Sent): boolean {
  return origin === CLOUD && method === 'POST';
}

/** The UID of the object for which a machine is asked for. */
export function ownerAsked({ body }: Sent): string {
  const content: unknown = JSON.parse(body ?? '{}');
  const uid = fieldAt(content, ['labels', 'vmwright.dev/uid']);
  return typeof uid === 'string' ? uid : '';
}
