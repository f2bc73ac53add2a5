import {
  type Client,
  type Draft,
  type EventInput,
  ignoreAlreadyExists,
  ignoreNotFound,
  type Kind,
  type KubeObject,
  keyOf,
  type Logger,
  type ObjectRef,
  Secret,
} from '@vmwright/runtime';
import type { AuditedAct } from '../audit.ts';
import { auditChild } from '../kubevirt/audit.ts';
import { DataVolume, KubevirtInstance, KubevirtMachine, PersistentVolumeClaim } from '../kubevirt/kinds.ts';
import { isOwnedBy } from '../kubevirt/ownership.ts';
import { remove } from '../kubevirt/remove.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import type { Action } from './actions.ts';
import { NameConflictError } from './errors.ts';
import { VirtualMachine } from './resource.ts';

/**
 * Checks that the name of a new Secret or KubeVirt VirtualMachine is not taken by an object of another owner. All
 * actions are checked before the first one is executed. So no child is created if one of the names is taken.
 * @throws NameConflictError
 */
export async function checkName(
  action: Action,
  vm: VirtualMachine,
  { client }: { readonly client: Pick<Client, 'get'> },
): Promise<undefined> {
  if (action.type === 'applySecret' && action.isNew) await rejectForeign(Secret, action.secret, vm, client);
  if (action.type === 'applyMachine' && action.isNew)
    await rejectForeign(KubevirtMachine, action.machine, vm, client);
}

/** Context of an action. */
interface ActionContext {
  readonly client: Pick<Client, 'create' | 'apply' | 'mergePatch' | 'delete'>;
  /** Read this field only to log: the first read creates the logger, and most reconciles do not log. */
  readonly log: Logger;
}

/** Executes an action of a plan. Every action can be repeated. @returns the event to record, if there is one */
export async function execute(
  action: Action,
  vm: VirtualMachine,
  context: ActionContext,
): Promise<EventInput | undefined> {
  if (action.type !== 'createImage') {
    await change(action, vm, context);
    return undefined;
  }
  // Another VirtualMachine may create the same image at the same time.
  const created = await ignoreAlreadyExists(context.client.create(VMDiskImage, action.image));
  return created && action.event;
}

async function change(
  action: Exclude<Action, { type: 'createImage' }>,
  vm: VirtualMachine,
  context: ActionContext,
): Promise<void> {
  const { client } = context;
  const { namespace, name } = vm.metadata;
  const acted = (act: AuditedAct['act'], kind: Kind, child: KubeObject, reason: string) =>
    auditChild(context.log, VirtualMachine, vm, { act, kind, child, reason });
  switch (action.type) {
    case 'applySecret':
      return void (await client.apply(Secret, action.secret));
    case 'createVolume': {
      const volume = await ignoreAlreadyExists(client.create(DataVolume, action.volume));
      if (volume !== undefined) acted('create', DataVolume, volume, 'the machine has no root disk');
      return;
    }
    case 'applyMachine': {
      const machine = await client.apply(KubevirtMachine, action.machine);
      return acted(action.isNew ? 'create' : 'reconfigure', KubevirtMachine, machine, action.reason);
    }
    case 'deleteVolume': {
      const ref = { namespace, name: action.name };
      if (await remove(client, DataVolume, ref, action))
        acted('delete', DataVolume, childOf(ref, action.uid), action.reason);
      return;
    }
    case 'resizeClaim': {
      const patch = {
        metadata: { uid: action.uid },
        spec: { resources: { requests: { storage: action.size } } },
      };
      const ref = { namespace, name: action.name };
      const claim = await client.mergePatch(PersistentVolumeClaim, ref, patch);
      return acted('reconfigure', PersistentVolumeClaim, claim, 'the disk is smaller than the spec');
    }
    case 'restart': {
      const ref = { namespace, name };
      if (await remove(client, KubevirtInstance, ref, { uid: action.uid }))
        acted('restart', KubevirtInstance, childOf(ref, action.uid), action.reason);
      return;
    }
  }
}

function childOf({ namespace = '', name }: ObjectRef, uid = ''): KubeObject {
  return { metadata: { namespace, name, uid } };
}

/**
 * Throws if an object of another owner has the name. Sends a request, because the caches contain only labelled objects.
 */
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
