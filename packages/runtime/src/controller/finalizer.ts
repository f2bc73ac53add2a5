import type { Client } from '../client/client.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';

export function hasFinalizer({ metadata }: KubeObject, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) ?? false;
}

/**
 * Adds or removes the controller's finalizer and keeps all others. A merge patch replaces the whole list, so the patch
 * carries the resource version of `object`.
 * @throws ConflictError if the object has changed since it was read
 */
export function setFinalizer<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  object: T,
  finalizer: string,
  wanted: boolean,
): Promise<T> {
  const { uid, resourceVersion, finalizers = [] } = object.metadata;
  const others = finalizers.filter((each) => each !== finalizer);
  const metadata = { uid, resourceVersion, finalizers: wanted ? [...others, finalizer] : others };
  return client.mergePatch(kind, object.metadata, { metadata });
}
