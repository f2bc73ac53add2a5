import {
  type Client,
  ConflictError,
  type DeleteOptions,
  type Draft,
  type EventInput,
  ignoreAlreadyExists,
  ignoreNotFound,
  type Kind,
  type KubeObject,
  keyOf,
  type ObjectRef,
  Secret,
} from '@vmwright/runtime';
import { DataVolume, KubevirtInstance, KubevirtMachine, PersistentVolumeClaim } from '../kubevirt/kinds.ts';
import { isOwnedBy } from '../kubevirt/ownership.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import type { Action } from './actions.ts';
import { NameConflictError } from './errors.ts';
import type { VirtualMachine } from './resource.ts';

/**
 * Checks that an object which an action creates does not belong to another owner. Must precede the first action, so that
 * nothing is created for a VirtualMachine whose children cannot all be created.
 * @throws NameConflictError
 */
export async function checkName(
  action: Action,
  vm: VirtualMachine,
  client: Pick<Client, 'get'>,
): Promise<undefined> {
  if (action.type === 'applySecret' && action.isNew) await rejectForeign(Secret, action.secret, vm, client);
  if (action.type === 'applyMachine' && action.isNew)
    await rejectForeign(KubevirtMachine, action.machine, vm, client);
}

/** Client with which actions are executed. */
type Writer = Pick<Client, 'create' | 'apply' | 'mergePatch' | 'delete'>;

/** Executes an action of a plan. Every action can be repeated. @returns the event to record */
export async function execute(
  action: Action,
  vm: VirtualMachine,
  client: Writer,
): Promise<EventInput | undefined> {
  if (action.type !== 'createImage') {
    await change(action, vm, client);
    return undefined;
  }
  // Another VirtualMachine may create the same image at the same time.
  const created = await ignoreAlreadyExists(client.create(VMDiskImage, action.image));
  return created && action.event;
}

async function change(
  action: Exclude<Action, { type: 'createImage' }>,
  vm: VirtualMachine,
  client: Writer,
): Promise<void> {
  const { namespace, name } = vm.metadata;
  switch (action.type) {
    case 'applySecret':
      return void (await client.apply(Secret, action.secret));
    case 'createVolume':
      return void (await ignoreAlreadyExists(client.create(DataVolume, action.volume)));
    case 'applyMachine':
      return void (await client.apply(KubevirtMachine, action.machine));
    case 'deleteVolume':
      return remove(client, DataVolume, { namespace, name: action.name }, action);
    case 'resizeClaim': {
      const patch = {
        metadata: { uid: action.uid },
        spec: { resources: { requests: { storage: action.size } } },
      };
      return void (await client.mergePatch(PersistentVolumeClaim, { namespace, name: action.name }, patch));
    }
    case 'restart':
      return remove(client, KubevirtInstance, { namespace, name }, { uid: action.uid });
  }
}

/**
 * Deletes the object with this UID, and with this resource version if one is given. Does nothing if it is gone, has changed, or
 * was replaced by another one of the same name.
 */
export async function remove(
  client: Pick<Client, 'delete'>,
  kind: Kind,
  ref: ObjectRef,
  { uid, resourceVersion }: Pick<DeleteOptions, 'uid' | 'resourceVersion'>,
): Promise<void> {
  try {
    await ignoreNotFound(client.delete(kind, ref, { uid, resourceVersion }));
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error; // Conflict: another UID or version
  }
}

/** The caches contain only labelled objects, so one of another owner is found only by a request. */
async function rejectForeign<T extends KubeObject>(
  kind: Kind<T>,
  { metadata }: Draft<T>,
  vm: VirtualMachine,
  client: Pick<Client, 'get'>,
): Promise<void> {
  const existing = await ignoreNotFound(client.get(kind, metadata));
  if (existing === undefined || isOwnedBy(existing, vm)) return;
  const description = kind.group === KubevirtMachine.group ? `KubeVirt ${kind.kind}` : kind.kind;
  throw new NameConflictError(description, keyOf(metadata));
}
