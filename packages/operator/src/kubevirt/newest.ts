import { type Client, ignoreNotFound, type Kind, type KubeObject } from '@vmwright/runtime';

/**
 * Whether the API server still stores this version of an object; false if the object is gone. A reconcile checks this
 * before it acts, because the cache of a new leader may lack the last writes of the previous leader, for example the
 * start of an attempt.
 */
export async function isNewest<T extends KubeObject>(
  kind: Kind<T>,
  { metadata }: Pick<T, 'metadata'>,
  client: Pick<Client, 'get'>,
): Promise<boolean> {
  const newest = await ignoreNotFound(client.get(kind, metadata));
  return newest?.metadata.resourceVersion === metadata.resourceVersion;
}
