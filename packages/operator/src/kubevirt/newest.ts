import { type Client, ignoreNotFound, type Kind, type KubeObject } from '@vmwright/runtime';

/**
 * Whether this version of an object is the newest one in the API server; false if the object is gone. A reconcile
 * checks this before it starts work, because the cache of a new leader may lack the last writes of the previous leader.
 */
export async function isNewest<T extends KubeObject>(
  kind: Kind<T>,
  { metadata }: Pick<T, 'metadata'>,
  client: Pick<Client, 'get'>,
): Promise<boolean> {
  const newest = await ignoreNotFound(client.get(kind, metadata));
  return newest?.metadata.resourceVersion === metadata.resourceVersion;
}
