import {
  type Client,
  ignoreNotFound,
  type Kind,
  type KubeObject,
  type OwnerReference,
} from '@vmwright/runtime';

/** Returns the owner reference for children that this object controls. */
export function ownerReference(kind: Kind, { metadata: { name, uid = '' } }: KubeObject): OwnerReference {
  return {
    apiVersion: `${kind.group}/${kind.version}`,
    kind: kind.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** Returns the owner reference to the controller of an object. */
export function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/**
 * Whether an object is the controller of `child`. The operator neither changes nor deletes a child with another
 * controller.
 */
export function isOwnedBy(child: KubeObject, { metadata: { uid } }: KubeObject): boolean {
  return uid !== undefined && controllerOf(child)?.uid === uid;
}

/**
 * Removes the owner references to `owner` from a child, so that the garbage collector does not delete the child with
 * the owner.
 * @param more further changes of the metadata of the child
 * @returns whether the child exists
 */
export async function disown(
  kind: Kind,
  child: KubeObject,
  owner: KubeObject,
  client: Pick<Client, 'mergePatch'>,
  more: object = {},
): Promise<boolean> {
  const { resourceVersion, ownerReferences = [] } = child.metadata;
  const others = ownerReferences.filter(({ uid }) => uid !== owner.metadata.uid);
  const metadata = { ...more, resourceVersion, ownerReferences: others };
  return (await ignoreNotFound(client.mergePatch(kind, child.metadata, { metadata }))) !== undefined;
}
