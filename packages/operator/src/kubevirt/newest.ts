import { type Client, ignoreNotFound, type Kind, type KubeObject } from '@vmwright/runtime';

/**
 * Whether the API server has no newer version of an object. A replica that has begun to lead may have a cache that lacks the last
 * writes of the previous leader: it must not act on an object that has changed since, for example on an attempt that it does not
 * know.
 */
export async function isNewest<T extends KubeObject>(
  kind: Kind<T>,
  { metadata }: Pick<T, 'metadata'>,
  client: Pick<Client, 'get'>,
): Promise<boolean> {
  const newest = await ignoreNotFound(client.get(kind, metadata));
  return newest?.metadata.resourceVersion === metadata.resourceVersion;
}
