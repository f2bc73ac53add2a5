import { type Client, ignoreNotFound, type Kind, type KubeObject } from '@vmwright/runtime';

/**
 * Whether an object still has the version that the API server stores; false if the object is gone. The cache of a new
 * leader may lack the last writes of the previous leader, for example the start of an attempt, so a reconcile checks
 * this before it acts.
 */
export async function isNewest<T extends KubeObject>(
  kind: Kind<T>,
  { metadata }: Pick<T, 'metadata'>,
  client: Pick<Client, 'get'>,
): Promise<boolean> {
  const newest = await ignoreNotFound(client.get(kind, metadata));
  return newest?.metadata.resourceVersion === metadata.resourceVersion;
}
