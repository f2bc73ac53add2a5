import { VirtualMachine, VMDiskImage } from '@vmwright/operator';
import type { ApiServer } from '../apiserver/api-server.ts';
import { ORPHAN } from '../apiserver/deletes.ts';
import type { FieldError } from '../apiserver/errors.ts';
import { fieldAt, same } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { declaredResource } from '../apiserver/resource.ts';
import type { Change } from '../apiserver/store.ts';
import { ConfigMap } from '../kubevirt/kinds.ts';
import { find, isOf, listAt, textAt } from '../scenario/stored-objects.ts';

/* Accessors for VirtualMachines and VMDiskImages as stored in the API server. */

/**
 * VirtualMachine and VMDiskImage as the API server model serves them, with only those CEL rules that a user of the
 * scenario can violate. `packages/operator/test` tests all CEL rules on a real API server.
 */
export const SERVED_VIRTUAL_MACHINE = declaredResource(VirtualMachine, (object, before): FieldError[] => {
  if (before === undefined) return [];
  const field = 'spec.vmDiskImageRef';
  const path = field.split('.');
  if (same(fieldAt(before, path), fieldAt(object, path))) return [];
  return [{ field, reason: 'FieldValueInvalid', message: 'vmDiskImageRef cannot be changed' }];
});
export const SERVED_IMAGE = declaredResource(VMDiskImage, () => []);

export const RETRY = 'vmwright.dev/retry';
const DELETION_POLICY = 'vmwright.dev/deletion-policy';

/** ConfigMap with the sync slots, in the operator's namespace. */
const SLOTS = { namespace: 'default', name: 'vmwright-image-syncs' };

/** Returns the key of the image that a VirtualMachine names. */
export function imageOf(machine: StoredObject): string {
  const namespace = textAt(machine, 'spec', 'vmDiskImageRef', 'namespace') ?? machine.metadata.namespace;
  return `${namespace}/${textAt(machine, 'spec', 'vmDiskImageRef', 'name')}`;
}

/** Returns the snapshots that the status of an image publishes. */
export function snapshotsIn(image: StoredObject): readonly string[] {
  return listAt(image, 'status', 'snapshots').map((each) => textAt(each, 'name') ?? '');
}

/** Whether the deletion of an object keeps its children, because of its deletion policy or `--cascade=orphan`. */
export function isOrphaned({ metadata }: StoredObject): boolean {
  return (
    metadata.annotations?.[DELETION_POLICY] === 'Orphan' || metadata.finalizers?.includes(ORPHAN) === true
  );
}

/** Returns the UIDs of the images that hold a sync slot. */
export function slotsIn(server: ApiServer): readonly string[] {
  const slots = find(server, ConfigMap, SLOTS.namespace, SLOTS.name);
  return Object.keys(Object(fieldAt(slots, ['data']) ?? {}));
}

/** Whether the change concerns the ConfigMap with the sync slots. */
export function isSlots({ resource, key }: Change): boolean {
  return isOf(resource, ConfigMap) && key === `${SLOTS.namespace}/${SLOTS.name}`;
}
