import {
  type Client,
  ConflictError,
  type DeleteOptions,
  type Kind,
  NotFoundError,
  type ObjectRef,
} from '@vmwright/runtime';

/**
 * Deletes the object if it has this UID and, if one is given, this resource version. Does nothing if the object is
 * gone, has changed, or was replaced by another object of the same name.
 * @returns whether the API server accepted the deletion
 */
export async function remove(
  client: Pick<Client, 'delete'>,
  kind: Kind,
  ref: ObjectRef,
  { uid, resourceVersion }: Pick<DeleteOptions, 'uid' | 'resourceVersion'>,
): Promise<boolean> {
  try {
    await client.delete(kind, ref, { uid, resourceVersion });
    return true;
  } catch (error) {
    const isOther = error instanceof NotFoundError || error instanceof ConflictError; // Conflict: another UID or version
    if (!isOther) throw error;
    return false;
  }
}
