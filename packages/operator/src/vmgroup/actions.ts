import {
  type ChangeOptions,
  ensureDestroyed,
  ensurePoweredOff,
  ensurePoweredOn,
  FaultError,
  faultOf,
  ignoreFaults,
  isRef,
  type Ref,
  type TaskRef,
} from '@vmwright/vsphere';
import { IsTemplateError, MovedError } from './held.ts';
import { isIn } from './machines.ts';
import { certainMarksIn, marksOf } from './marks.ts';
import { MB_IN_GIB } from './memory.ts';
import { folderName } from './names.ts';
import { InVainError, type Operation } from './operations.ts';
import type { Placement, VmGroup } from './resource.ts';
import type { Root } from './root.ts';
import type { Site } from './site.ts';
import { type Action, isHeld } from './slots.ts';
import { type Destination, wantedBy } from './targets.ts';
import { GroupError } from './trouble.ts';

/** All that an action needs to be carried out. */
export interface Surroundings {
  readonly site: Site;
  readonly root: Root;
  readonly placement: Placement;
  readonly group: VmGroup;
  /** Marks what is ours. */
  readonly cluster: string;
  /** There where something is to be cloned. */
  readonly destination: Destination | undefined;
}

/** What an operation has while it runs. */
interface Running extends Surroundings {
  /** The operation's own signal and fence; every call is made with them. */
  readonly scope: ChangeOptions;
}

/** What carries an action out, in vCenter's tasks. */
export function operationFor(action: Action, surroundings: Surroundings): Operation {
  const { root, group } = surroundings;
  const { uid = '' } = group.metadata;
  const name = group.status?.replicas?.find(({ slot }) => slot === action.slot)?.name ?? '';
  const seen = () => root.machinesOf(uid).find(({ marks }) => marks.slot === action.slot)?.properties;
  const power = () => seen()?.['runtime.powerState'];
  const isSized = () => {
    const { 'config.hardware.numCPU': cpus, 'config.hardware.memoryMB': memoryMb } = seen() ?? {};
    return seen() === undefined || (cpus === group.spec.cpu && memoryMb === group.spec.memory * MB_IN_GIB);
  };
  switch (action.do) {
    case 'clone':
      return {
        what: 'clone',
        machine: action.name,
        words: wordsOf(group),
        run: (at, scope) => clone(action, { ...surroundings, scope }, at),
        // It is there before it is switched on, and that is part of its making.
        shows: () => power() === 'poweredOn',
      };
    case 'powerOn':
      return {
        what: 'powerOn',
        machine: name,
        words: `powering machine ${name} on`,
        run: (at, scope) =>
          ensurePoweredOn(surroundings.site.vcenter, machine(action.id), { ...scope, onTask: at }),
        shows: () => power() === 'poweredOn',
      };
    case 'reconfigure':
      return {
        what: 'reconfigure',
        machine: name,
        words: `giving machine ${name} its cpu and memory`,
        run: (at, scope) => reconfigure(machine(action.id), { ...surroundings, scope }, at),
        shows: isSized,
      };
    case 'shutDown':
      return {
        what: 'shutDown',
        machine: name,
        words: `shutting machine ${name} down`,
        run: (at, scope) => shutDown(machine(action.id), { ...surroundings, scope }, at),
        shows: () => true,
      };
    case 'resize':
      return {
        what: 'resize',
        machine: name,
        words: `giving machine ${name} its cpu and memory`,
        run: (at, scope) => resize(machine(action.id), action.isOn, { ...surroundings, scope }, at),
        shows: () => isSized() && power() !== 'poweredOff',
      };
    case 'remove': {
      let isDestroyed = false;
      return {
        what: 'remove',
        machine: name,
        words: `removing machine ${name}`,
        run: async (at, scope) => {
          isDestroyed = await remove(machine(action.id), action.isOn, { ...surroundings, scope }, at);
        },
        shows: () => seen() === undefined,
        provesGone: () => isDestroyed,
      };
    }
    case 'lookUp': {
      let isGone = false;
      return {
        what: 'lookUp',
        machine: name,
        words: `looking machine ${name} up`,
        run: async (_, scope) => {
          isGone = await confirmGone(action, { ...surroundings, scope });
        },
        shows: () => true,
        provesGone: () => isGone,
      };
    }
  }
}

/** What clones are, in words that are the same for all of a group's. */
export function wordsOf({ spec: { template } }: VmGroup): string {
  return `making machines from template '${template}'`;
}

/** A task that was begun before, by us or by another, until its end. */
export function taken(
  what: Action['do'],
  { name, task }: { readonly name: string; readonly task: string },
  { site }: Pick<Surroundings, 'site'>,
): Operation {
  return {
    what,
    machine: name,
    words: `following ${task}`,
    run: async (at, { signal }) => {
      const ref: TaskRef = { type: 'Task', value: task };
      at(ref);
      // However it ended, the next reconcile looks at the machine itself.
      await site.vcenter.tasks.follow(ref, { signal }).catch(() => undefined);
    },
    shows: () => true,
  };
}

type At = (task: TaskRef) => void;

async function clone(
  { name, slot, instanceUuid, again }: Action & { readonly do: 'clone' },
  running: Running,
  at: At,
): Promise<void> {
  const { site, root, placement, group, cluster, destination, scope } = running;
  if (destination === undefined) throw new Error('a clone has nowhere to go');
  const { vcenter } = site;
  const { cpu: cpus, memory } = group.spec;
  // A name protects within its folder only: one that people have moved is still the one.
  const there = again ? await vcenter.lookup.byInstanceUuid(instanceUuid, scope) : undefined;
  if (there !== undefined) return takeBack(there, slot, destination, running, at);
  try {
    const task = await vcenter.machines.clone(
      {
        ...destination,
        ...{ name, instanceUuid, cpus, memoryMb: memory * MB_IN_GIB, powerOn: true },
        extraConfig: marksOf(cluster, group, slot, destination.template),
      },
      scope,
    );
    at(task);
    await vcenter.tasks.follow(task, scope);
  } catch (error) {
    const other = faultOf(error, 'DuplicateName')?.object;
    if (other !== undefined) return refuseUnlessOurs(other, name, instanceUuid, running);
    site.targets.forget(root.datacenter, wantedBy(group, placement));
    throw error;
  }
}

/** A name that is taken is no error yet: after a lost answer it is taken by the very machine that we have asked for. */
async function refuseUnlessOurs(
  other: Ref,
  name: string,
  instanceUuid: string,
  { site, root, group, scope }: Running,
): Promise<void> {
  const { uid = '' } = group.metadata;
  if (root.machinesOf(uid).some(({ ref }) => ref.value === other.value)) return;
  const uuid = isRef(other, 'VirtualMachine') ? await uuidOf(site, other, scope) : 'none';
  if (uuid === instanceUuid) return;
  throw new GroupError(
    uuid === undefined
      ? {
          reason: 'VcenterBusy',
          message: `vCenter does not show yet what machine ${name} is; it is asked again`,
          isPassing: true,
        }
      : {
          reason: 'NameTaken',
          message: `in the group's folder there is a machine '${name}' that is not the group's; rename it or move it away`,
        },
  );
}

/** Undefined while vCenter cannot tell: while it is being made, or its files cannot be reached. */
async function uuidOf(
  site: Site,
  vm: Ref<'VirtualMachine'>,
  { signal }: ChangeOptions,
): Promise<string | undefined> {
  return (await site.vcenter.read(vm, ['config.instanceUuid'], { signal }))['config.instanceUuid'];
}

/** One that was asked for before is there, and does not show: its marks were taken off, or it was moved away. */
async function takeBack(
  vm: Ref<'VirtualMachine'>,
  slot: number,
  { folder, template }: Destination,
  { site, root, group, cluster, scope }: Running,
  at: At,
): Promise<void> {
  const { machines, tasks } = site.vcenter;
  const { uid = '' } = group.metadata;
  if (root.machinesOf(uid).some(({ ref }) => ref.value === vm.value)) return;
  const { parent, name } = await site.vcenter.read(vm, ['parent', 'name'], scope);
  if (parent?.value !== folder.value) throw new MovedError(name ?? vm.value);
  const extraConfig = marksOf(cluster, group, slot, template);
  const task = await machines.reconfigure(vm, { extraConfig }, scope);
  at(task);
  await tasks.follow(task, scope);
}

/**
 * Whether no machine of a slot is left anywhere in vCenter. A machine without our labels counts as gone: people released
 * it from the group.
 * @throws MovedError where it is outside the watched folder; GroupError while the inventory does not show it yet
 */
async function confirmGone(
  { instanceUuid }: Action & { readonly do: 'lookUp' },
  { site, root, group, scope }: Running,
): Promise<boolean> {
  const { vcenter } = site;
  const vm = await vcenter.lookup.byInstanceUuid(instanceUuid, scope);
  if (vm === undefined) return true;
  const paths = ['name', 'parent', 'config.instanceUuid', 'config.extraConfig'] as const;
  const properties = await vcenter.read(vm, paths, scope);
  if (certainMarksIn({ ref: vm, properties }) === undefined) return true;
  const { name = vm.value, parent } = properties;
  const folder = root.child(folderName(group));
  if (folder === undefined || parent?.value !== folder.value) throw new MovedError(name);
  throw new GroupError({
    reason: 'VcenterBusy',
    message: `the inventory does not show machine '${name}' yet; retrying automatically`,
    isPassing: true,
  });
}

/** What is wrong with a soft shutdown that a hard one helps against. */
const NOT_SOFTLY: readonly FaultError['code'][] = ['TOOLS_UNAVAILABLE', 'NOT_SUPPORTED', 'INVALID_STATE'];

/** The guest is asked to; where there is nobody to ask, by the plug. */
async function shutDown(vm: Ref<'VirtualMachine'>, running: Running, at: At): Promise<void> {
  const { site, scope } = running;
  try {
    await site.vcenter.machines.shutdownGuest(vm, scope);
  } catch (error) {
    if (!(error instanceof FaultError && NOT_SOFTLY.includes(error.code))) throw error;
    await ensurePoweredOff(site.vcenter, vm, { ...scope, onTask: at });
  }
}

async function reconfigure(
  vm: Ref<'VirtualMachine'>,
  { site, group, scope }: Running,
  at: At,
): Promise<void> {
  const { cpu: cpus, memory } = group.spec;
  const { machines, tasks } = site.vcenter;
  const task = await machines.reconfigure(vm, { cpus, memoryMb: memory * MB_IN_GIB }, scope);
  at(task);
  await tasks.follow(task, scope);
}

/** One that vCenter does not let be what is wanted runs on as it was. */
async function resize(vm: Ref<'VirtualMachine'>, isOn: boolean, running: Running, at: At): Promise<void> {
  const { site, scope } = running;
  if (isOn) await ensurePoweredOff(site.vcenter, vm, { ...scope, onTask: at });
  const refusal = await reconfigure(vm, running, at).catch((error: unknown) => error);
  await ensurePoweredOn(site.vcenter, vm, { ...scope, onTask: at });
  if (refusal === undefined) return;
  throw new InVainError(refusal, { mayPass: !(refusal instanceof FaultError) || refusal.retryable });
}

/** @returns whether it was destroyed; see `ensureDestroyed` */
async function remove(vm: Ref<'VirtualMachine'>, isOn: boolean, running: Running, at: At): Promise<boolean> {
  const { site, scope } = running;
  const isDestroyed = await ignoreFaults(['OBJECT_NOT_FOUND'], async () => {
    await assertNotHeld(vm, running);
    return ensureDestroyed(site.vcenter, vm, { ...scope, onTask: at, powerOff: isOn });
  });
  return isDestroyed ?? false;
}

/** Read right before the machine is destroyed: the inventory may not show yet that people moved it, or need it. */
async function assertNotHeld(
  vm: Ref<'VirtualMachine'>,
  { site, root, group, scope }: Running,
): Promise<void> {
  const properties = await site.vcenter.read(vm, ['name', 'parent', 'config.template'], scope);
  const { name = vm.value, parent, 'config.template': isTemplate = false } = properties;
  const isInFolder = isIn(root.child(folderName(group)), parent);
  if (!isHeld({ isInFolder, isTemplate })) return;
  throw isTemplate ? new IsTemplateError(name) : new MovedError(name);
}

export function machine(value: string): Ref<'VirtualMachine'> {
  return { type: 'VirtualMachine', value };
}
