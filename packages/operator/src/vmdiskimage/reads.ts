import { type Client, NotFoundError } from '@vmwright/runtime';
import { VMDiskImage } from './resource.ts';

/** Resolves to undefined instead of failing if the object does not exist. */
export async function ignoreNotFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/**
 * Whether the API server has no newer version of an image. A replica that has begun to lead may have a cache that lacks the last
 * writes of the previous leader: it must not release the slot or delete the children of an attempt that it does not know.
 */
export async function isNewest({ metadata }: VMDiskImage, client: Pick<Client, 'get'>): Promise<boolean> {
  const newest = await ignoreNotFound(client.get(VMDiskImage, metadata));
  return newest?.metadata.resourceVersion === metadata.resourceVersion;
}
