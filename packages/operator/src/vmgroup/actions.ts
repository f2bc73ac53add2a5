import { type ChangeOptions, FaultError, faultOf, isRef, type Ref, type TaskRef } from '@vmwright/vsphere';
import { marksOf } from './marks.ts';
import type { Operation } from './operations.ts';
import type { Action } from './plan.ts';
import type { VmGroup } from './resource.ts';
import type { Root } from './root.ts';
import type { Site, Target } from './site.ts';
import { GroupError } from './trouble.ts';

/** All that an action needs to be carried out. */
export interface Surroundings {
  readonly site: Site;
  readonly root: Root;
  readonly group: VmGroup;
  /** Marks what is ours. */
  readonly cluster: string;
  /** Where clones go; there where something is to be cloned. */
  readonly destination: (Target & { readonly folder: Ref<'Folder'> }) | undefined;
  /** Throws when we may not act any more. */
  readonly allow: () => void;
}

const MB_IN_GIB = 1_024;

/** What carries an action out, in vCenter's tasks. */
export function operationFor(action: Action, surroundings: Surroundings): Operation {
  const { root, group } = surroundings;
  const { uid = '' } = group.metadata;
  const seen = () => root.machinesOf(uid).find(({ marks }) => marks.slot === action.slot)?.properties;
  const isSized = () => {
    const { 'config.hardware.numCPU': cpus, 'config.hardware.memoryMB': memoryMb } = seen() ?? {};
    return seen() === undefined || (cpus === group.spec.cpu && memoryMb === group.spec.memory * MB_IN_GIB);
  };
  switch (action.do) {
    case 'clone':
      return {
        what: 'clone',
        run: (at) => clone(action, surroundings, at),
        // It is there before it is switched on, and that is part of its making.
        shows: () => seen()?.['runtime.powerState'] === 'poweredOn',
      };
    case 'powerOn':
      return {
        what: 'powerOn',
        run: (at) => powerOn(machine(action.id), surroundings, at),
        shows: () => seen()?.['runtime.powerState'] === 'poweredOn',
      };
    case 'reconfigure':
      return {
        what: 'reconfigure',
        run: (at) => reconfigure(machine(action.id), surroundings, at),
        shows: isSized,
      };
    case 'resize':
      return {
        what: 'resize',
        run: async (at) => {
          const vm = machine(action.id);
          await powerOff(vm, surroundings, at);
          await reconfigure(vm, surroundings, at);
          await powerOn(vm, surroundings, at);
        },
        shows: () => isSized() && seen()?.['runtime.powerState'] !== 'poweredOff',
      };
    case 'remove':
      return {
        what: 'remove',
        run: (at) => remove(machine(action.id), action.isOn, surroundings, at),
        shows: () => seen() === undefined,
      };
  }
}

/** A task that was begun before, by us or by another, until its end. */
export function resumed(what: Action['do'], task: string, { site }: Pick<Surroundings, 'site'>): Operation {
  return {
    what,
    run: async (at) => {
      const ref: TaskRef = { type: 'Task', value: task };
      at(ref);
      // However it ended: what is there then is looked at anew.
      await site.vcenter.tasks.follow(ref).catch(() => undefined);
    },
    shows: () => true,
  };
}

type At = (task: TaskRef) => void;

async function clone(
  { name, slot, instanceUuid }: Action & { readonly do: 'clone' },
  { site, root, group, cluster, destination, allow }: Surroundings,
  at: At,
): Promise<void> {
  if (destination === undefined) throw new Error('a clone has nowhere to go');
  const { vcenter } = site;
  const { cpu: cpus, memory } = group.spec;
  try {
    const task = await vcenter.machines.clone(
      {
        ...destination,
        ...{ name, instanceUuid, cpus, memoryMb: memory * MB_IN_GIB, powerOn: true },
        extraConfig: marksOf(cluster, group, slot),
      },
      { allow },
    );
    at(task);
    await vcenter.tasks.follow(task);
  } catch (error) {
    const taken = faultOf(error, 'DuplicateName')?.object;
    if (taken === undefined) {
      site.forgetTargets();
      throw error;
    }
    // After a lost answer it is taken by the very machine that we have asked for.
    const { uid = '' } = group.metadata;
    const isOurs = root.machinesOf(uid).some(({ ref }) => ref.value === taken.value);
    if (isOurs || (isRef(taken, 'VirtualMachine') && (await hasUuid(site, taken, instanceUuid)))) return;
    throw new GroupError({
      reason: 'NameTaken',
      message: `in the group's folder there is a machine '${name}' that is not the group's; rename it or move it away`,
    });
  }
}

async function hasUuid(site: Site, vm: Ref<'VirtualMachine'>, uuid: string): Promise<boolean> {
  const { 'config.instanceUuid': own } = await site.vcenter.read(vm, ['config.instanceUuid']);
  return own === uuid;
}

async function powerOn(vm: Ref<'VirtualMachine'>, { site, allow }: Surroundings, at: At): Promise<void> {
  const { machines, tasks } = site.vcenter;
  await unless(['INVALID_POWER_STATE'], async () => {
    const task = await machines.powerOn(vm, { allow });
    at(task);
    await tasks.follow(task);
  });
}

/** By the plug; or by the guest itself, where it is given time for that. */
async function powerOff(
  vm: Ref<'VirtualMachine'>,
  { site, group, allow }: Surroundings,
  at: At,
): Promise<void> {
  const { machines, tasks } = site.vcenter;
  const { shutdownSeconds = 0 } = group.spec;
  await unless(['INVALID_POWER_STATE'], async () => {
    const patienceMs = shutdownSeconds * 1_000;
    const task = await (patienceMs > 0
      ? machines.shutDown(vm, { patienceMs, allow })
      : machines.powerOff(vm, { allow }));
    if (task === undefined) return;
    at(task);
    await tasks.follow(task);
  });
}

async function reconfigure(
  vm: Ref<'VirtualMachine'>,
  { site, group, allow }: Surroundings,
  at: At,
): Promise<void> {
  const { cpu: cpus, memory } = group.spec;
  const { machines, tasks } = site.vcenter;
  const task = await machines.reconfigure(vm, { cpus, memoryMb: memory * MB_IN_GIB }, { allow });
  at(task);
  await tasks.follow(task);
}

async function remove(
  vm: Ref<'VirtualMachine'>,
  isOn: boolean,
  surroundings: Surroundings,
  at: At,
): Promise<void> {
  const { machines, tasks } = surroundings.site.vcenter;
  await unless(['OBJECT_NOT_FOUND'], async () => {
    if (isOn) await powerOff(vm, surroundings, at);
    const task = await machines.destroy(vm, { allow: surroundings.allow });
    at(task);
    await tasks.follow(task);
  });
}

/** Removes a machine of nobody's: by the plug. */
export async function removeStray(
  { vcenter }: Pick<Site, 'vcenter'>,
  vm: Ref<'VirtualMachine'>,
  options: ChangeOptions,
): Promise<void> {
  const { machines, tasks } = vcenter;
  await unless(['OBJECT_NOT_FOUND'], async () => {
    await unless(['INVALID_POWER_STATE'], async () => {
      await tasks.follow(await machines.powerOff(vm, options));
    });
    await tasks.follow(await machines.destroy(vm, options));
  });
}

/** What is so already need not be done. */
async function unless(codes: readonly FaultError['code'][], work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof FaultError && codes.includes(error.code))) throw error;
  }
}

function machine(value: string): Ref<'VirtualMachine'> {
  return { type: 'VirtualMachine', value };
}
