import {
  type ChangeOptions,
  type EnsureOptions,
  ensureDestroyed,
  ensurePoweredOff,
  ensurePoweredOn,
  FaultError,
  faultOf,
  ignoreFaults,
  isRef,
  type MachineChange,
  type Ref,
  type TaskRef,
} from '@vmwright/vsphere';
import type { Act } from '../audit.ts';
import { ReportedError } from '../vcenter/errors.ts';
import { knownOwnershipOf, ownershipLabels } from '../vcenter/ownership.ts';
import type { VCenter } from '../vcenter/vcenter.ts';
import type { CloneDestination } from './clone-targets.ts';
import { MovedError, ResizeRejectedError, TurnedIntoTemplateError } from './errors.ts';
import type { OnAct, Operation } from './group-in-flight.ts';
import { folderName } from './identity.ts';
import { isInFolder, machineRef } from './machines.ts';
import { MB_IN_GIB } from './memory.ts';
import type { Location } from './placement.ts';
import type { VmGroup } from './resource.ts';
import { type Action, type ActionType, isTakenOver } from './slots.ts';

/** Objects that the operations of a group use. */
export interface OperationContext extends Location {
  readonly group: VmGroup;
  /** Id of this cluster in the ownership labels. */
  readonly cluster: string;
  /** Destination of clones; undefined if no machine is to be cloned. */
  readonly destination: CloneDestination | undefined;
  /**
   * Drops the group's clone target from the cache. Called after a failed clone, because an outdated target may have
   * caused the failure.
   */
  readonly evictTarget: () => void;
}

/** Context of a running operation. */
interface Running extends OperationContext {
  /** Signal and fence of the operation, passed to every call. */
  readonly scope: ChangeOptions;
  /** Called with each change as vCenter accepts it. */
  readonly onAct: OnAct;
}

/** Returns the operation that executes an action. */
export function operationFor(action: Action, context: OperationContext): Operation {
  const { watched, group } = context;
  const { uid = '' } = group.metadata;
  const name = group.status?.replicas?.find(({ slot }) => slot === action.slot)?.name ?? '';
  const listed = () =>
    watched.machinesOf(uid).find(({ ownership }) => ownership.slot === action.slot)?.properties;
  const power = () => listed()?.['runtime.powerState'];
  const isSized = () => {
    const { 'config.hardware.numCPU': cpus, 'config.hardware.memoryMB': memoryMb } = listed() ?? {};
    return listed() === undefined || (cpus === group.spec.cpu && memoryMb === group.spec.memory * MB_IN_GIB);
  };
  const running = (onAct: OnAct, scope: ChangeOptions): Running => ({ ...context, onAct, scope });
  const isDeleted = group.metadata.deletionTimestamp !== undefined;
  const removalReason = isDeleted
    ? 'the VmGroup is being deleted'
    : 'the group needs it no longer, or replaces it';
  const sizeReason = 'its cpu or memory differs from the spec';
  switch (action.type) {
    case 'clone':
      return {
        type: 'clone',
        machine: action.name,
        attempt: cloneAttempt(group),
        reason: 'a replica has no machine',
        run: (onAct, scope) => clone(action, running(onAct, scope)),
        // The operation also powers the clone on. So its result is visible only when the machine runs.
        isVisible: () => power() === 'poweredOn',
      };
    case 'powerOn':
      return {
        type: 'powerOn',
        machine: name,
        attempt: `powering on machine ${name}`,
        reason: 'it is powered off',
        run: (onAct, scope) =>
          ensurePoweredOn(context.vcenter.client, machineRef(action.id), ensuring({ onAct, scope })),
        isVisible: () => power() === 'poweredOn',
      };
    case 'reconfigure':
      return {
        type: 'reconfigure',
        machine: name,
        attempt: `changing cpu and memory of machine ${name}`,
        reason: sizeReason,
        run: (onAct, scope) => reconfigure(machineRef(action.id), running(onAct, scope)),
        isVisible: isSized,
      };
    case 'shutDown':
      return {
        type: 'shutDown',
        machine: name,
        attempt: `shutting down machine ${name}`,
        reason: removalReason,
        run: (onAct, scope) => shutDown(machineRef(action.id), running(onAct, scope)),
        isVisible: () => true,
      };
    case 'resize':
      return {
        type: 'resize',
        machine: name,
        attempt: `changing cpu and memory of machine ${name}`,
        reason: sizeReason,
        run: (onAct, scope) => resize(machineRef(action.id), action.isOn, running(onAct, scope)),
        isVisible: () => isSized() && power() !== 'poweredOff',
      };
    case 'remove': {
      let isDestroyed = false;
      return {
        type: 'remove',
        machine: name,
        attempt: `removing machine ${name}`,
        reason: removalReason,
        run: async (onAct, scope) => {
          isDestroyed = await remove(machineRef(action.id), action.isOn, running(onAct, scope));
        },
        isVisible: () => listed() === undefined,
        provesGone: () => isDestroyed,
      };
    }
    case 'lookUp': {
      let isGone = false;
      return {
        type: 'lookUp',
        machine: name,
        attempt: `looking up machine ${name}`,
        reason: 'the inventory does not show it',
        run: async (onAct, scope) => {
          isGone = await confirmGone(action, running(onAct, scope));
        },
        isVisible: () => true,
        provesGone: () => isGone,
      };
    }
  }
}

const ACTS: Readonly<Record<MachineChange, Act>> = {
  powerOn: 'powerOn',
  powerOff: 'powerOff',
  destroy: 'delete',
};

/** Returns options with which `ensurePoweredOn`, `ensurePoweredOff` and `ensureDestroyed` report changes to `onAct`. */
function ensuring({ onAct, scope }: Pick<Running, 'onAct' | 'scope'>): EnsureOptions {
  return { ...scope, onTask: (task, change) => onAct(task, ACTS[change]) };
}

/** Describes clones for messages, with the same text for all machines of a group. */
export function cloneAttempt({ spec: { template } }: VmGroup): string {
  return `cloning machines from template '${template}'`;
}

/** Returns an operation that follows a vCenter task which another process, or an earlier leadership term, started. */
export function followTask(type: ActionType, machine: string, task: string, { client }: VCenter): Operation {
  return {
    type,
    machine,
    attempt: `following vCenter task ${task}`,
    reason: 'an earlier process started the task',
    run: async (onAct, { signal }) => {
      const ref: TaskRef = { type: 'Task', value: task };
      onAct(ref, undefined);
      // The result is ignored, because the next reconcile observes the machine itself.
      await client.tasks.follow(ref, { signal }).catch(() => undefined);
    },
    isVisible: () => true,
  };
}

async function clone(
  { name, slot, instanceUuid, isRetry }: Action & { readonly type: 'clone' },
  running: Running,
): Promise<void> {
  const { vcenter, group, destination, evictTarget, onAct, scope } = running;
  if (destination === undefined) throw new Error('a clone needs a destination');
  const { client } = vcenter;
  const { cpu: cpus, memory } = group.spec;
  // A retry looks for the clone of an earlier attempt by UUID, because the clone may have been moved to another folder.
  // vCenter would then accept a second clone: it rejects duplicate names only within a folder.
  const existing = isRetry ? await client.lookup.byInstanceUuid(instanceUuid, scope) : undefined;
  if (existing !== undefined) return adoptMachine(existing, slot, destination, running);
  try {
    const task = await client.machines.clone(
      {
        ...destination,
        name,
        instanceUuid,
        cpus,
        memoryMb: memory * MB_IN_GIB,
        powerOn: true,
        extraConfig: labelsOf(slot, destination, running),
      },
      scope,
    );
    onAct(task, 'create');
    await client.tasks.follow(task, scope);
  } catch (error) {
    const duplicate = faultOf(error, 'DuplicateName')?.object;
    if (duplicate !== undefined) return assertOurs(duplicate, name, instanceUuid, running);
    evictTarget();
    throw error;
  }
}

function labelsOf(slot: number, { template }: CloneDestination, { cluster, group }: OperationContext) {
  const { uid = '', namespace = '', name } = group.metadata;
  return ownershipLabels({
    cluster,
    uid,
    namespace,
    name,
    slot,
    template: group.spec.template,
    templateId: template.value,
  });
}

/**
 * Checks that the existing machine with this name is the machine of this slot. An earlier clone request may have
 * created it, if the response to that request was lost.
 * @throws ReportedError if the machine is not the group's, or if its UUID is unknown
 */
async function assertOurs(
  duplicate: Ref,
  name: string,
  instanceUuid: string,
  { vcenter, watched, group, scope }: Running,
): Promise<void> {
  const { uid = '' } = group.metadata;
  if (watched.machinesOf(uid).some(({ ref }) => ref.value === duplicate.value)) return;
  const uuid = isRef(duplicate, 'VirtualMachine') ? await uuidOf(vcenter, duplicate, scope) : 'none';
  if (uuid === instanceUuid) return;
  throw new ReportedError(
    uuid === undefined
      ? {
          reason: 'VcenterBusy',
          message: `vCenter does not show the UUID of machine ${name} yet; retrying automatically`,
          isProgressing: true,
        }
      : {
          reason: 'NameTaken',
          message: `the group's folder contains a machine '${name}' that does not belong to the group; rename it, or move it away`,
        },
  );
}

/**
 * Returns the instance UUID; undefined while vCenter does not show it, because the machine is being created or its
 * files are unavailable.
 */
async function uuidOf(
  { client }: VCenter,
  vm: Ref<'VirtualMachine'>,
  { signal }: ChangeOptions,
): Promise<string | undefined> {
  return (await client.read(vm, ['config.instanceUuid'], { signal }))['config.instanceUuid'];
}

/**
 * Adopts the machine of an earlier clone. A machine that the inventory does not list for the group has lost its
 * ownership labels. The labels are then set again.
 * @throws MovedError if the machine is outside the group's folder
 */
async function adoptMachine(
  vm: Ref<'VirtualMachine'>,
  slot: number,
  destination: CloneDestination,
  running: Running,
): Promise<void> {
  const { vcenter, watched, group, onAct, scope } = running;
  const { machines, tasks } = vcenter.client;
  const { uid = '' } = group.metadata;
  if (watched.machinesOf(uid).some(({ ref }) => ref.value === vm.value)) return;
  const { parent, name } = await vcenter.client.read(vm, ['parent', 'name'], scope);
  if (parent?.value !== destination.folder.value) throw new MovedError(name ?? vm.value);
  const task = await machines.reconfigure(vm, { extraConfig: labelsOf(slot, destination, running) }, scope);
  onAct(task, 'reconfigure');
  await tasks.follow(task, scope);
}

/**
 * Returns whether vCenter has no machine of a slot. A machine without ownership labels counts as gone, because people
 * released it from the group.
 * @throws MovedError if the machine is outside the group's folder
 * @throws ReportedError while the inventory does not show the machine, or vCenter does not show its configuration
 */
async function confirmGone(
  { instanceUuid }: Action & { readonly type: 'lookUp' },
  { vcenter, watched, group, scope }: Running,
): Promise<boolean> {
  const { client } = vcenter;
  const vm = await client.lookup.byInstanceUuid(instanceUuid, scope);
  if (vm === undefined) return true;
  const paths = ['name', 'parent', 'config.instanceUuid', 'config.extraConfig'] as const;
  const properties = await client.read(vm, paths, scope);
  if (knownOwnershipOf({ ref: vm, properties }) === undefined) return true;
  const { name = vm.value, parent } = properties;
  const folder = watched.child(folderName(group));
  if (folder === undefined || parent?.value !== folder.value) throw new MovedError(name);
  throw new ReportedError({
    reason: 'VcenterBusy',
    message: `the inventory does not show machine '${name}' yet; retrying automatically`,
    isProgressing: true,
  });
}

/** Faults of a guest shutdown after which the machine is powered off instead. */
const GUEST_CANNOT_SHUT_DOWN: readonly FaultError['code'][] = [
  'TOOLS_UNAVAILABLE',
  'NOT_SUPPORTED',
  'INVALID_STATE',
];

/** Asks the guest to shut down, or powers the machine off if the guest cannot shut down. */
async function shutDown(
  vm: Ref<'VirtualMachine'>,
  { vcenter: { client }, onAct, scope }: Running,
): Promise<void> {
  try {
    await client.machines.shutdownGuest(vm, scope);
    onAct(undefined, 'powerOff');
  } catch (error) {
    if (!(error instanceof FaultError && GUEST_CANNOT_SHUT_DOWN.includes(error.code))) throw error;
    await ensurePoweredOff(client, vm, ensuring({ onAct, scope }));
  }
}

async function reconfigure(
  vm: Ref<'VirtualMachine'>,
  { vcenter, group, onAct, scope }: Running,
): Promise<void> {
  const { cpu: cpus, memory } = group.spec;
  const { machines, tasks } = vcenter.client;
  const task = await machines.reconfigure(vm, { cpus, memoryMb: memory * MB_IN_GIB }, scope);
  onAct(task, 'reconfigure');
  await tasks.follow(task, scope);
}

/** Changes the size of a machine. The machine is powered on again even if vCenter rejects the size. */
async function resize(vm: Ref<'VirtualMachine'>, isOn: boolean, running: Running): Promise<void> {
  const { vcenter } = running;
  const options = ensuring(running);
  if (isOn) await ensurePoweredOff(vcenter.client, vm, options);
  const rejection = await reconfigure(vm, running).catch((error: unknown) => error);
  await ensurePoweredOn(vcenter.client, vm, options);
  if (rejection === undefined) return;
  const retryable = !(rejection instanceof FaultError) || rejection.retryable;
  throw new ResizeRejectedError(rejection, { retryable });
}

/**
 * Destroys a machine, unless people took it over.
 * @returns false if vCenter does not know the reference; the machine may still exist under another reference
 */
async function remove(vm: Ref<'VirtualMachine'>, isOn: boolean, running: Running): Promise<boolean> {
  const { vcenter } = running;
  const isDestroyed = await ignoreFaults(['OBJECT_NOT_FOUND'], async () => {
    await assertNotTakenOver(vm, running);
    return ensureDestroyed(vcenter.client, vm, { ...ensuring(running), powerOff: isOn });
  });
  return isDestroyed ?? false;
}

/**
 * Throws if people took the machine over. Reads the machine from vCenter right before it is destroyed, because the
 * inventory may be outdated.
 */
async function assertNotTakenOver(
  vm: Ref<'VirtualMachine'>,
  { vcenter, watched, group, scope }: Running,
): Promise<void> {
  const properties = await vcenter.client.read(vm, ['name', 'parent', 'config.template'], scope);
  const { name = vm.value, parent, 'config.template': isTemplate = false } = properties;
  const folder = watched.child(folderName(group));
  if (!isTakenOver({ isInFolder: isInFolder(parent, folder), isTemplate })) return;
  throw isTemplate ? new TurnedIntoTemplateError(name) : new MovedError(name);
}
