import { type Client, ignoreNotFound } from '@vmwright/runtime';
import { VMDiskImage } from './resource.ts';

/**
 * Whether the API server has no newer version of an image. A replica that has begun to lead may have a cache that lacks the last
 * writes of the previous leader: it must not release the slot or delete the children of an attempt that it does not know.
 */
export async function isNewest({ metadata }: VMDiskImage, client: Pick<Client, 'get'>): Promise<boolean> {
  const newest = await ignoreNotFound(client.get(VMDiskImage, metadata));
  return newest?.metadata.resourceVersion === metadata.resourceVersion;
}
