import { type Client, ignoreNotFound, type KubeObject, Namespace } from '@vmwright/runtime';
import { type DeletionPolicy, deletionPolicyOf } from '../annotations.ts';

/**
 * Finalizer that a deletion with `--cascade=orphan` adds. It makes the garbage collector remove the owner references of
 * the children.
 */
const ORPHAN = 'orphan';

/**
 * Returns the deletion policy of an object with children that are Kubernetes objects. `kubectl delete --cascade=orphan`
 * has the same effect as the annotation `vmwright.dev/deletion-policy: Orphan`. The garbage collector removes the owner
 * references of the children first, and then the finalizer `orphan`. So when a reconcile no longer sees the finalizer,
 * it finds no children to delete.
 */
export function cascadingPolicyOf(object: KubeObject): DeletionPolicy | { readonly problem: string } {
  return object.metadata.finalizers?.includes(ORPHAN) ? 'Orphan' : deletionPolicyOf(object);
}

/**
 * Returns why a foreground deletion is rejected; undefined if it is accepted. With the deletion policy Orphan it is
 * rejected: the garbage collector would delete the children before the operator can remove their owner references.
 */
export function foregroundProblem(object: KubeObject, propagation: string | undefined): string | undefined {
  if (propagation !== 'Foreground' || deletionPolicyOf(object) !== 'Orphan') return undefined;
  return 'Foreground deletion would delete the objects that the annotation vmwright.dev/deletion-policy: Orphan keeps. Delete the object with --cascade=background';
}

/** Whether the namespace of an object is being deleted, together with its content. */
export async function isNamespaceTerminating(
  { metadata: { namespace = '' } }: KubeObject,
  client: Pick<Client, 'get'>,
): Promise<boolean> {
  const found = await ignoreNotFound(client.get(Namespace, { name: namespace }));
  return found?.metadata.deletionTimestamp !== undefined;
}
