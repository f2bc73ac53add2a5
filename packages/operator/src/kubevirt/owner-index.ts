import type { KubeObject, ObjectCache } from '@vmwright/runtime';
import { controllerOf } from './ownership.ts';

const OWNER_INDEX = 'owner';

/** Adds the index that `ownedIn` reads. May be called more than once. */
export function indexOwners<T extends KubeObject>(cache: Pick<ObjectCache<T>, 'addIndex'>): void {
  cache.addIndex(OWNER_INDEX, ownerKeys);
}

/** Returns the cached objects that have this object as their controller. */
export function ownedIn<T extends KubeObject>(
  cache: Pick<ObjectCache<T>, 'byIndex'>,
  { metadata: { namespace, uid = '' } }: KubeObject,
): readonly T[] {
  return [...cache.byIndex(OWNER_INDEX, ownerKey(namespace, uid))];
}

/**
 * Returns the key of a child in the index. The key contains the namespace of the child, so `ownedIn` ignores children
 * in other namespaces. Kubernetes forbids an owner in another namespace, but the API server stores such an owner
 * reference. A user could write it without rights in the namespace of the owner.
 */
export function ownerKeys(child: KubeObject): readonly string[] {
  const uid = controllerOf(child)?.uid;
  return uid === undefined ? [] : [ownerKey(child.metadata.namespace, uid)];
}

/** Returns the index key of the objects in a namespace that the object with this UID controls. */
export function ownerKey(namespace: string | undefined, uid: string): string {
  return `${namespace ?? ''}/${uid}`;
}
