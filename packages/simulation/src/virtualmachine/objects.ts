import { VirtualMachine, VMDiskImage } from '@vmwright/operator';
import type { Kind } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { FieldError } from '../apiserver/errors.ts';
import { fieldAt, same } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { declaredResource } from '../apiserver/resource.ts';
import type { Change } from '../apiserver/store.ts';
import { ConfigMap, find, isOf } from '../kubevirt/kinds.ts';

/* Accessors for VirtualMachines and VMDiskImages as stored in the API server. */

/**
 * The kinds as the model serves them. Of their CEL rules, only those are repeated here that a user of the scenario can violate;
 * `packages/operator/test` tests all of them on a real API server.
 */
export const SERVED_VIRTUAL_MACHINE = declaredResource(VirtualMachine, (object, before): FieldError[] => {
  if (before === undefined) return [];
  const field = 'spec.vmDiskImageRef';
  const path = field.split('.');
  if (same(fieldAt(before, path), fieldAt(object, path))) return [];
  return [{ field, reason: 'FieldValueInvalid', message: 'vmDiskImageRef cannot be changed' }];
});
export const SERVED_IMAGE = declaredResource(VMDiskImage, () => []);

export const PAUSED = 'vmwright.dev/paused';
export const RETRY = 'vmwright.dev/retry';
const DELETION_POLICY = 'vmwright.dev/deletion-policy';

/** ConfigMap with the sync slots, in the operator's namespace. */
const SLOTS = { namespace: 'default', name: 'vmwright-image-syncs' };

export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = fieldAt(value, path);
  return typeof found === 'string' ? found : undefined;
}

export function numberAt(value: unknown, ...path: readonly string[]): number | undefined {
  const found = fieldAt(value, path);
  return typeof found === 'number' ? found : undefined;
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = fieldAt(value, path);
  return Array.isArray(found) ? found : [];
}

export function keyOf({ metadata: { namespace, name } }: StoredObject): string {
  return `${namespace}/${name}`;
}

/** Returns the key of the image that a VirtualMachine names. */
export function imageOf(machine: StoredObject): string {
  const namespace = textAt(machine, 'spec', 'vmDiskImageRef', 'namespace') ?? machine.metadata.namespace;
  return `${namespace}/${textAt(machine, 'spec', 'vmDiskImageRef', 'name')}`;
}

export function phaseIn(object: StoredObject | undefined): string | undefined {
  return textAt(object, 'status', 'phase');
}

/** Returns the snapshots that the status of an image publishes. */
export function snapshotsIn(image: StoredObject): readonly string[] {
  return listAt(image, 'status', 'snapshots').map((each) => textAt(each, 'name') ?? '');
}

export interface ConditionSeen {
  readonly status: string | undefined;
  readonly reason: string | undefined;
  readonly message: string | undefined;
}

export function conditionOf(object: StoredObject, type: string): ConditionSeen | undefined {
  const found = listAt(object, 'status', 'conditions').find((each) => textAt(each, 'type') === type);
  if (found === undefined) return undefined;
  return {
    status: textAt(found, 'status'),
    reason: textAt(found, 'reason'),
    message: textAt(found, 'message'),
  };
}

export function isTerminating({ metadata }: StoredObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

export function isPaused({ metadata }: StoredObject): boolean {
  return metadata.annotations?.[PAUSED] === 'true';
}

export function isOrphaned({ metadata }: StoredObject): boolean {
  return metadata.annotations?.[DELETION_POLICY] === 'Orphan';
}

/** Returns the stored object of a kind with this UID. */
export function byUid(server: ApiServer, kind: Kind, uid: string | undefined): StoredObject | undefined {
  return server.objects(kind).find(({ metadata }) => metadata.uid === uid);
}

/** Returns the stored object of a kind with this `namespace/name`. */
export function byKey(server: ApiServer, kind: Kind, key: string): StoredObject | undefined {
  const [namespace = '', name = ''] = key.split('/');
  return find(server, kind, namespace, name);
}

/** Returns the UIDs of the images that hold a sync slot. */
export function slotsIn(server: ApiServer): readonly string[] {
  const slots = find(server, ConfigMap, SLOTS.namespace, SLOTS.name);
  return Object.keys(Object(fieldAt(slots, ['data']) ?? {}));
}

/** Whether the change is one of the ConfigMap with the sync slots. */
export function isSlots({ resource, key }: Change): boolean {
  return isOf(resource, ConfigMap) && key === `${SLOTS.namespace}/${SLOTS.name}`;
}

/** Calls the listener on each change of an object of a kind. */
export function onChange(
  server: ApiServer,
  kind: Kind,
  listener: (before: StoredObject | undefined, after: StoredObject | undefined, change: Change) => void,
): void {
  server.listen((change) => {
    if (isOf(change.resource, kind)) listener(change.before?.object, change.after?.object, change);
  });
}
