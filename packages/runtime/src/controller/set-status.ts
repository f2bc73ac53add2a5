import type { Client } from '../client/client.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { mergePatch } from './merge-patch.ts';

/**
 * A merge patch of the difference instead of an apply: with the version it was computed from, it is as safe, and costs
 * the API server less (measured with one worker: 271 instead of 203 a second).
 */
export async function setStatus<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  object: T,
  status: object,
): Promise<T> {
  const difference = mergePatch('status' in object ? object.status : {}, status);
  if (difference === undefined) return object;
  const { uid, resourceVersion } = object.metadata;
  const patch = { metadata: { uid, resourceVersion }, status: difference };
  return client.mergePatch(kind, object.metadata, patch, { subresource: 'status' });
}
