import type { Kind, KubeObject, OwnerReference } from '@vmwright/runtime';

/** Returns the owner reference to an object, as the controller of its children. */
export function ownerReference(kind: Kind, { metadata: { name, uid = '' } }: KubeObject): OwnerReference {
  return {
    ...{ apiVersion: `${kind.group}/${kind.version}`, kind: kind.kind, name, uid },
    ...{ controller: true, blockOwnerDeletion: true },
  };
}

/** Returns the owner reference to the controller of an object. */
export function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/** Whether an object is the controller of another one. The operator changes and deletes no other objects. */
export function isOwnedBy(child: KubeObject, { metadata: { uid } }: KubeObject): boolean {
  return uid !== undefined && controllerOf(child)?.uid === uid;
}
