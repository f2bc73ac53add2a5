import { type Condition, setCondition } from '@vmwright/runtime';
import { instanceUuid, replicaName } from './names.ts';
import type { Replica, VmGroup, VmGroupStatus } from './resource.ts';
import type { Trouble } from './trouble.ts';

/** A machine of the group, as vCenter shows it. */
export interface Machine {
  readonly slot: number;
  /** Its reference in vCenter. */
  readonly id: string;
  readonly power: 'poweredOn' | 'poweredOff' | 'suspended';
  readonly cpus: number;
  readonly memoryMb: number;
  /** What it was cloned from, in the words of the spec of then. */
  readonly template: string;
  /** What can be added while it runs. */
  readonly canAdd: { readonly cpus: boolean; readonly memory: boolean };
  readonly ip?: string | undefined;
  readonly host?: string | undefined;
}

/** What a reconcile has found. */
export interface Seen {
  readonly machines: readonly Machine[];
  /** What is being done to a slot, or was and does not show yet. */
  readonly busy: ReadonlyMap<number, Doing>;
  /** Slots, and what could not be done to them; they are left alone for a while. */
  readonly resting: ReadonlySet<number | 'clone'>;
  /** What stood in the way last. */
  readonly trouble?: Trouble | undefined;
}

export interface Doing {
  readonly what: Action['do'];
  /** vCenter's task. */
  readonly task?: string | undefined;
}

/** What is to be done to the machine of a slot. */
export type Action =
  | { readonly do: 'clone'; readonly slot: number; readonly name: string; readonly instanceUuid: string }
  | { readonly do: 'powerOn'; readonly slot: number; readonly id: string }
  | { readonly do: 'reconfigure'; readonly slot: number; readonly id: string }
  /** Off, changed, and on again: what cannot be added while it runs. */
  | { readonly do: 'resize'; readonly slot: number; readonly id: string }
  | { readonly do: 'remove'; readonly slot: number; readonly id: string; readonly isOn: boolean };

export interface Plan {
  /** What is stored before anything is done. */
  readonly status: VmGroupStatus;
  /** In the order of their worth, where not all can be done at a time. */
  readonly actions: readonly Action[];
}

const DONE = 'successfully reconciled VmGroup';
const MB_IN_GIB = 1_024;

interface Slot {
  readonly replica: Replica;
  readonly machine: Machine | undefined;
  readonly doing: Doing | undefined;
}

/**
 * What to do next for a group that is wanted, and what to say of it.
 *
 * Each machine has a slot, which is stored before it is asked for, and marked as leaving before it is removed. A slot that
 * leaves never comes back: who asks for a machine meanwhile gets another. There are never more slots than wanted
 * machines, but for those that leave.
 */
export function plan(group: VmGroup, seen: Seen, now: number): Plan {
  const slots = rollOut(group, seen, scaled(group, seen, now));
  const actions = actionsFor(group, seen, slots);
  return { status: observed(group, seen, slots, now), actions };
}

/** The slots that there shall be, with those that leave. */
function scaled(group: VmGroup, seen: Seen, now: number): readonly Slot[] {
  const { spec, status = {} } = group;
  const machines = new Map(seen.machines.map((machine) => [machine.slot, machine]));
  const known = new Map((status.replicas ?? []).map((replica) => [replica.slot, replica]));
  // One that nobody knows of has come late, after it was given up; or what was known of it got lost. It is as good as any.
  for (const slot of machines.keys()) if (!known.has(slot)) known.set(slot, decided(group, slot, now));
  const slots: Slot[] = [];
  for (const replica of known.values()) {
    const { slot } = replica;
    const [machine, doing] = [machines.get(slot), seen.busy.get(slot)];
    const isGone = replica.leaving === true && machine === undefined && doing === undefined;
    if (!isGone) slots.push({ replica, machine, doing });
  }
  const surplus = slots.filter(({ replica }) => !replica.leaving).length - spec.replicas;
  const victims = new Set(surplus > 0 ? inOrderOfLeaving(group, slots).slice(0, surplus) : []);
  const kept = slots.map((slot) => (victims.has(slot) ? leaving(slot) : slot));
  const added: Slot[] = [];
  for (let slot = 0; kept.length + added.length < spec.replicas; slot++)
    if (!known.has(slot))
      added.push({ replica: decided(group, slot, now), machine: undefined, doing: seen.busy.get(slot) });
  return [...kept, ...added].sort((a, b) => a.replica.slot - b.replica.slot);
}

/** Those that are to be replaced leave, as many at a time as may be away. */
function rollOut(group: VmGroup, seen: Seen, slots: readonly Slot[]): readonly Slot[] {
  const { spec } = group;
  if (spec.update?.strategy === 'OnDelete') return slots;
  let budget = spareOf(group, slots);
  return slots.map((slot) => {
    const { machine, replica } = slot;
    const isOld = machine !== undefined && machine.template !== spec.template;
    if (!isOld || replica.leaving || seen.resting.has(replica.slot)) return slot;
    if (isReady(slot) && budget-- <= 0) return slot;
    return leaving(slot);
  });
}

function actionsFor(group: VmGroup, seen: Seen, slots: readonly Slot[]): readonly Action[] {
  const isRolling = group.spec.update?.strategy !== 'OnDelete';
  let budget = spareOf(group, slots);
  const actions = slots.flatMap((slot): readonly Action[] => {
    const { replica, machine, doing } = slot;
    const { slot: number, name, instanceUuid } = replica;
    if (doing !== undefined || seen.resting.has(number)) return [];
    if (machine === undefined)
      return replica.leaving || seen.resting.has('clone')
        ? []
        : [{ do: 'clone', slot: number, name, instanceUuid }];
    const { id } = machine;
    const isOn = machine.power === 'poweredOn';
    if (replica.leaving) return [{ do: 'remove', slot: number, id, isOn: machine.power !== 'poweredOff' }];
    if (!isRolling || isSized(group, machine)) return isOn ? [] : [{ do: 'powerOn', slot: number, id }];
    if (machine.power === 'poweredOff' || canChangeRunning(group, machine))
      return [{ do: 'reconfigure', slot: number, id }];
    return budget-- > 0 ? [{ do: 'resize', slot: number, id }] : [];
  });
  return actions.sort((a, b) => WORTH.indexOf(a.do) - WORTH.indexOf(b.do));
}

const WORTH: readonly Action['do'][] = ['powerOn', 'reconfigure', 'remove', 'clone', 'resize'];

/** Those that may leave, first those that leave first. */
function inOrderOfLeaving({ spec }: VmGroup, slots: readonly Slot[]): readonly Slot[] {
  const { scaleIn = 'NotReadyFirst' } = spec;
  const age = (a: Slot, b: Slot) =>
    a.replica.created.localeCompare(b.replica.created) || a.replica.slot - b.replica.slot;
  const isThere = ({ machine, doing }: Slot) => Number(machine !== undefined || doing !== undefined);
  const readiness = (a: Slot, b: Slot) =>
    isThere(a) - isThere(b) || (scaleIn === 'NotReadyFirst' ? Number(isReady(a)) - Number(isReady(b)) : 0);
  return slots
    .filter(({ replica }) => !replica.leaving)
    .sort((a, b) => readiness(a, b) || (scaleIn === 'Oldest' ? age(a, b) : age(b, a)));
}

/** How many more may be away than are. */
function spareOf({ spec }: VmGroup, slots: readonly Slot[]): number {
  const { maxUnavailable = 1 } = spec.update ?? {};
  const most =
    typeof maxUnavailable === 'number'
      ? maxUnavailable
      : Math.max(1, Math.floor((Number.parseInt(maxUnavailable, 10) * spec.replicas) / 100));
  return most - (spec.replicas - slots.filter(isReady).length);
}

function isReady({ replica, machine, doing }: Slot): boolean {
  const isGoingDown = doing?.what === 'resize' || doing?.what === 'remove';
  return machine?.power === 'poweredOn' && !replica.leaving && !isGoingDown;
}

function isSized({ spec }: VmGroup, { cpus, memoryMb }: Machine): boolean {
  return cpus === spec.cpu && memoryMb === spec.memory * MB_IN_GIB;
}

function canChangeRunning({ spec }: VmGroup, { power, cpus, memoryMb, canAdd }: Machine): boolean {
  const wantedMb = spec.memory * MB_IN_GIB;
  return (
    power === 'poweredOn' &&
    (cpus === spec.cpu || (cpus < spec.cpu && canAdd.cpus)) &&
    (memoryMb === wantedMb || (memoryMb < wantedMb && canAdd.memory))
  );
}

function leaving(slot: Slot): Slot {
  return { ...slot, replica: { ...slot.replica, leaving: true } };
}

function decided(group: VmGroup, slot: number, now: number): Replica {
  return {
    slot,
    name: replicaName(group, slot),
    instanceUuid: instanceUuid(group.metadata.uid ?? '', slot),
    created: new Date(now).toISOString(),
  };
}

/** The status with one more attempt for those that are about to be cloned: only a write is compared with what is stored. */
export function attempting(status: VmGroupStatus, actions: readonly Action[]): VmGroupStatus {
  const cloned = new Set(actions.flatMap((action) => (action.do === 'clone' ? action.slot : [])));
  if (cloned.size === 0) return status;
  const counted = (replica: Replica) => ({ ...replica, attempts: (replica.attempts ?? 0) + 1 });
  const replicas = status.replicas?.map((each) => (cloned.has(each.slot) ? counted(each) : each));
  return { ...status, ...(replicas && { replicas }) };
}

/** The status with what is being done by now. */
export function withTasks(status: VmGroupStatus, busy: ReadonlyMap<number, Doing>): VmGroupStatus {
  const replicas = status.replicas?.map(({ task: _, ...replica }) => {
    const task = busy.get(replica.slot)?.task;
    return { ...replica, ...(task !== undefined && { task }) };
  });
  return { ...status, ...(replicas && { replicas }) };
}

function observed(group: VmGroup, seen: Seen, slots: readonly Slot[], now: number): VmGroupStatus {
  const { spec, metadata } = group;
  const machines = slots.flatMap(({ machine }) => machine ?? []);
  const ready = slots.filter(isReady).length;
  const isCurrent = (machine: Machine) => machine.template === spec.template && isSized(group, machine);
  const updated = slots.filter(({ machine, replica }) => machine && !replica.leaving && isCurrent(machine));
  const isUpdated = updated.length === spec.replicas || spec.update?.strategy === 'OnDelete';
  const isDone = machines.length === spec.replicas && ready === spec.replicas && isUpdated;
  const [current, wanted] = [machines.length, spec.replicas];
  const status: VmGroupStatus = {
    ...group.status,
    currentReplicas: current,
    desiredReplicas: wanted,
    readyReplicas: ready,
    updatedReplicas: updated.length,
    selector: `vmwright.dev/vmgroup=${metadata.name.slice(0, 63)}`,
    replicas: slots.map(shownAs),
  };
  if (isDone)
    return told(group, status, now, 'RUNNING', { status: 'True', reason: 'Running', message: DONE });
  if (seen.trouble !== undefined) return troubled({ ...group, status }, seen.trouble, now);
  const message =
    current !== wanted
      ? `there are ${current} of ${wanted} machines`
      : ready !== wanted
        ? `${ready} of ${wanted} machines run`
        : `${updated.length} of ${wanted} machines are as wanted; the others are updated`;
  return told(group, status, now, 'PENDING', { status: 'False', reason: 'Progressing', message });
}

function shownAs({ replica, machine, doing }: Slot): Replica {
  const { power: _, ip: __, host: ___, task: ____, ...kept } = replica;
  const { power, ip, host } = machine ?? {};
  const task = doing?.task;
  return {
    ...kept,
    ...(power && { power }),
    ...(ip && { ip }),
    ...(host && { host }),
    ...(task !== undefined && { task }),
  };
}

/** The status when something stands in the way: what was known stays. */
export function troubled(group: VmGroup, trouble: Trouble, now: number): VmGroupStatus {
  const { reason, message, isUnknown } = trouble;
  const ready = { status: isUnknown ? 'Unknown' : 'False', reason, message } as const;
  return told(group, { ...group.status, desiredReplicas: group.spec.replicas }, now, 'ERROR', ready);
}

/** The status of a group that is being deleted. */
export function departing(group: VmGroup, message: string, now: number): VmGroupStatus {
  const status = { ...group.status, readyReplicas: 0 };
  return told(group, status, now, 'PENDING', { status: 'False', reason: 'Deleting', message });
}

function told(
  { metadata: { generation } }: VmGroup,
  status: VmGroupStatus,
  now: number,
  phase: NonNullable<VmGroupStatus['phase']>,
  ready: Pick<Condition, 'status' | 'reason' | 'message'>,
): VmGroupStatus {
  const observedGeneration = generation === undefined ? {} : { observedGeneration: generation };
  const conditions = setCondition(status.conditions, { type: 'Ready', ...ready, ...observedGeneration }, now);
  return { ...status, phase, lastMessage: ready.message, conditions };
}
