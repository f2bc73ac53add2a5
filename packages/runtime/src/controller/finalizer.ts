import type { Client } from '../client/client.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';

export function hasFinalizer({ metadata }: KubeObject, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) ?? false;
}

/**
 * Adds or removes our finalizer and touches nobody else's: the list is replaced as a whole, on condition that the object
 * is still the very version it was taken from (else ConflictError, upon which one looks again).
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
