import { type Condition, setCondition } from '@vmwright/runtime';
import { MB_IN_GIB } from './memory.ts';
import { instanceUuid, replicaName } from './names.ts';
import type { Replica, VmGroup, VmGroupStatus } from './resource.ts';
import type { Trouble } from './trouble.ts';

/** A machine of the group, as vCenter shows it. */
export interface Machine {
  readonly slot: number;
  /** Its reference in vCenter. */
  readonly id: string;
  readonly power: 'poweredOn' | 'poweredOff' | 'suspended';
  /** Whether vCenter has to do with it: not while its host does not respond, or its files cannot be reached. */
  readonly isConnected: boolean;
  readonly cpus: number;
  readonly memoryMb: number;
  /** What it was cloned from, in the words of the spec of then, and the same in vCenter's. */
  readonly template: string;
  readonly templateId: string;
  /** What can be added while it runs. */
  readonly canAdd: { readonly cpus: boolean; readonly memoryUpToMb: number };
  readonly ip?: string | undefined;
  readonly host?: string | undefined;
}

/** What a reconcile has found. */
export interface Seen {
  readonly machines: readonly Machine[];
  /** What is being done to a slot, or was and does not show yet. */
  readonly busy: ReadonlyMap<number, Doing>;
  /** Slots to which something could not be done; they are left alone for a while. */
  readonly resting: ReadonlySet<number>;
  /** Clones could not be made; none is tried for a while. */
  readonly isCloningAtRest: boolean;
  /** Slots whose machines vCenter does not let be what is wanted; for a while they run on as they are. */
  readonly inVain: ReadonlySet<number>;
  /** The wanted template, in vCenter's words, as it was found last. */
  readonly templateId?: string | undefined;
  /** Whether it has just been found. */
  readonly isTemplateThere?: boolean | undefined;
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
  | {
      readonly do: 'clone';
      readonly slot: number;
      readonly name: string;
      readonly instanceUuid: string;
      /** Whether vCenter was asked for it before, and may have made it somewhere. */
      readonly again: boolean;
    }
  | { readonly do: 'powerOn'; readonly slot: number; readonly id: string }
  | { readonly do: 'reconfigure'; readonly slot: number; readonly id: string }
  /** Its guest is asked to; what comes then is seen. */
  | { readonly do: 'shutDown'; readonly slot: number; readonly id: string }
  /** Off, changed, and on again, whether or not vCenter lets it be changed: what cannot be added while it runs. */
  | { readonly do: 'resize'; readonly slot: number; readonly id: string; readonly isOn: boolean }
  | { readonly do: 'remove'; readonly slot: number; readonly id: string; readonly isOn: boolean };

export interface Plan {
  /** What is stored before anything is done. */
  readonly status: VmGroupStatus;
  /** In the order of their worth, where not all can be done at a time. */
  readonly actions: readonly Action[];
  /** After which it is to be looked at again, though nothing may happen. */
  readonly againMs?: number | undefined;
}

const DONE = 'successfully reconciled VmGroup';

/** Between the clocks of two replicas. */
const MOST_SKEW_MS = 60_000;

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
  const slots = rollOut(group, seen, scaled(group, seen, now)).map((slot) => staying(group, slot));
  const actions = actionsFor(group, seen, slots, now);
  return { status: observed(group, seen, slots, now), actions, againMs: patienceLeft(group, slots, now) };
}

/** The same for a group that is being deleted: none of its machines is wanted. */
export function planDeletion(group: VmGroup, seen: Seen, message: string, now: number): Plan {
  const none = plan({ ...group, spec: { ...group.spec, replicas: 0 } }, seen, now);
  const said = seen.trouble?.message ?? message;
  return { ...none, status: departing({ ...group, status: none.status }, said, now) };
}

/** The slots that there shall be, with those that leave. */
function scaled(group: VmGroup, seen: Seen, now: number): readonly Slot[] {
  const { spec, status = {} } = group;
  const machines = new Map(seen.machines.map((machine) => [machine.slot, machine]));
  const known = new Map((status.replicas ?? []).map((replica) => [replica.slot, replica]));
  // One that nobody knows of has come late, after it was given up; or what was known of it got lost. It is as good as any.
  for (const slot of machines.keys())
    if (!known.has(slot)) known.set(slot, { ...decided(group, slot, now), attempts: 1 });
  const slots: Slot[] = [];
  for (const replica of known.values()) {
    const { slot } = replica;
    const [machine, doing] = [machines.get(slot), seen.busy.get(slot)];
    const isGone = replica.leaving === true && machine === undefined && doing === undefined;
    if (!isGone) slots.push({ replica, machine, doing });
  }
  const surplus = slots.filter(({ replica }) => !replica.leaving).length - spec.replicas;
  const victims = new Set(surplus > 0 ? inOrderOfLeaving(group, slots).slice(0, surplus) : []);
  const isThere = ({ machine, doing }: Slot) => machine !== undefined || doing !== undefined;
  const kept = slots.flatMap((slot) => (victims.has(slot) ? (isThere(slot) ? leaving(slot) : []) : slot));
  const added: Slot[] = [];
  for (let slot = 0; kept.length + added.length < spec.replicas; slot++)
    if (!known.has(slot))
      added.push({ replica: decided(group, slot, now), machine: undefined, doing: seen.busy.get(slot) });
  return [...kept, ...added].sort((a, b) => a.replica.slot - b.replica.slot);
}

/** Those that are to be replaced leave, as many at a time as may be away; none does for a template that is not there. */
function rollOut(group: VmGroup, seen: Seen, slots: readonly Slot[]): readonly Slot[] {
  const { spec } = group;
  if (spec.update?.strategy === 'OnDelete' || !seen.isTemplateThere || seen.isCloningAtRest) return slots;
  let budget = spareOf(group, slots);
  return slots.map((slot) => {
    const { machine, replica } = slot;
    // Of one that vCenter has lost touch with nobody can say that it is away: it waits for its host.
    const isOld = machine?.isConnected === true && !isFromTemplate(group, seen, machine);
    if (!isOld || replica.leaving || seen.resting.has(replica.slot)) return slot;
    if (isReady(slot) && budget-- <= 0) return slot;
    return leaving(slot);
  });
}

function actionsFor(group: VmGroup, seen: Seen, slots: readonly Slot[], now: number): readonly Action[] {
  const isRolling = group.spec.update?.strategy !== 'OnDelete';
  const softly = (slot: Slot, then: Action): readonly Action[] => {
    const { slot: number, shutdownAt } = slot.replica;
    const isAsked = shutdownAt !== undefined;
    if (then.do === 'clone' || slot.machine?.power !== 'poweredOn' || patienceOf(group) === 0) return [then];
    if (!isAsked) return [{ do: 'shutDown', slot: number, id: then.id }];
    return endOfPatience(group, shutdownAt, now) <= now ? [then] : [];
  };
  let budget = spareOf(group, slots);
  const actions = slots.flatMap((slot): readonly Action[] => {
    const { replica, machine, doing } = slot;
    const { slot: number, name, instanceUuid } = replica;
    if (doing !== undefined || seen.resting.has(number)) return [];
    if (machine === undefined) {
      const again = (replica.attempts ?? 0) > 0;
      if (replica.leaving || seen.isCloningAtRest) return [];
      return [{ do: 'clone', slot: number, name, instanceUuid, again }];
    }
    const { id, power } = machine;
    if (replica.leaving)
      return softly(slot, { do: 'remove', slot: number, id, isOn: power !== 'poweredOff' });
    if (!machine.isConnected) return []; // whoever mends that comes first
    const isOn = power === 'poweredOn';
    const isToStay = !isRolling || isSized(group, machine) || seen.inVain.has(number);
    if (isToStay) return isOn ? [] : [{ do: 'powerOn', slot: number, id }];
    if (canChangeRunning(group, machine)) return [{ do: 'reconfigure', slot: number, id }];
    // Who does not run takes nothing away from the others.
    const resize = { do: 'resize', slot: number, id, isOn: power !== 'poweredOff' } as const;
    return !isReady(slot) || budget-- > 0 ? softly(slot, resize) : [];
  });
  return actions.sort((a, b) => WORTH.indexOf(a.do) - WORTH.indexOf(b.do));
}

const WORTH: readonly Action['do'][] = ['powerOn', 'reconfigure', 'shutDown', 'remove', 'clone', 'resize'];

/** A guest that was asked to shut itself down, and need not any more, is as good as any: should it do so, it is switched on. */
function staying(group: VmGroup, slot: Slot): Slot {
  const { shutdownAt, ...replica } = slot.replica;
  const { machine } = slot;
  const isRolling = group.spec.update?.strategy !== 'OnDelete';
  const isToGo = replica.leaving || (machine !== undefined && isRolling && !isSized(group, machine));
  return shutdownAt === undefined || (isToGo && machine?.power === 'poweredOn') ? slot : { ...slot, replica };
}

/** When a guest that was asked to shut itself down is not waited for any more. */
function endOfPatience(group: VmGroup, shutdownAt: string, now: number): number {
  const askedAt = Date.parse(shutdownAt);
  // Of a clock that was put back nobody can tell how much of the time is over.
  return askedAt > now + MOST_SKEW_MS ? now : askedAt + patienceOf(group);
}

/** How long guests are given to shut themselves down. */
function patienceOf({ spec: { shutdownSeconds = 0 } }: VmGroup): number {
  return shutdownSeconds * 1_000;
}

/** Until the first of those that were asked to shut themselves down is not waited for any more. */
function patienceLeft(group: VmGroup, slots: readonly Slot[], now: number): number | undefined {
  const left = slots.flatMap(({ replica: { shutdownAt }, machine }) => {
    if (shutdownAt === undefined || machine?.power !== 'poweredOn') return [];
    return Math.max(1, endOfPatience(group, shutdownAt, now) - now);
  });
  return left.length === 0 ? undefined : Math.min(...left);
}

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
  const isGoingDown =
    replica.leaving ||
    replica.shutdownAt !== undefined ||
    doing?.what === 'resize' ||
    doing?.what === 'remove';
  return machine?.power === 'poweredOn' && machine.isConnected && !isGoingDown;
}

/** By its name, under which there may be a newer one by now; or by what it is, however it is called by now. */
function isFromTemplate({ spec }: VmGroup, { templateId }: Seen, machine: Machine): boolean {
  return machine.template === spec.template || machine.templateId === templateId;
}

function isSized({ spec }: VmGroup, { cpus, memoryMb }: Machine): boolean {
  return cpus === spec.cpu && memoryMb === spec.memory * MB_IN_GIB;
}

function canChangeRunning({ spec }: VmGroup, { power, cpus, memoryMb, canAdd }: Machine): boolean {
  const wantedMb = spec.memory * MB_IN_GIB;
  return (
    power === 'poweredOn' &&
    (cpus === spec.cpu || (cpus < spec.cpu && canAdd.cpus)) &&
    (memoryMb === wantedMb || (memoryMb < wantedMb && wantedMb <= canAdd.memoryUpToMb))
  );
}

function leaving(slot: Slot): Slot {
  return { ...slot, replica: { ...slot.replica, leaving: true } };
}

function decided(group: VmGroup, slot: number, now: number): Replica {
  const wasUsed = slot < (group.status?.slotsUsed ?? 0);
  return {
    slot,
    name: replicaName(group, slot),
    instanceUuid: instanceUuid(group.metadata.uid ?? '', slot),
    created: new Date(now).toISOString(),
    // Its machine of before may be somewhere, where nobody has shown it to us.
    ...(wasUsed && { attempts: 1 }),
  };
}

/**
 * The status as it is stored right before these are done. Making and removing are counted: only a write is compared with
 * what is stored, and who does not know what has changed since is refused there.
 */
export function attempting(status: VmGroupStatus, actions: readonly Action[], now: number): VmGroupStatus {
  const done = new Map(actions.map((action) => [action.slot, action.do]));
  const counted = (replica: Replica): Replica => {
    const { slot, attempts = 0 } = replica;
    const what = done.get(slot);
    if (what === 'clone' || what === 'remove') return { ...replica, attempts: attempts + 1 };
    if (what === 'shutDown') return { ...replica, shutdownAt: new Date(now).toISOString() };
    if (what !== 'resize') return replica;
    const { shutdownAt: _, ...others } = replica; // it is off now, and up again soon
    return others;
  };
  return { ...status, ...(status.replicas && { replicas: status.replicas.map(counted) }) };
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
  const isCurrent = (machine: Machine) => isFromTemplate(group, seen, machine) && isSized(group, machine);
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
    selector: `vmwright.dev/vmgroup=${metadata.name.slice(0, 63).replace(/[^a-z0-9]+$/, '')}`,
    replicas: slots.map(shownAs),
    slotsUsed: Math.max(group.status?.slotsUsed ?? 0, ...slots.map(({ replica }) => replica.slot + 1)),
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
  const { power: _, ip: __, host: ___, task: ____, shutdownAt, ...kept } = replica;
  const { power, ip, host } = machine ?? {};
  const task = doing?.task;
  return {
    ...kept,
    ...(shutdownAt !== undefined && { shutdownAt }),
    ...(power && { power }),
    ...(ip && { ip }),
    ...(host && { host }),
    ...(task !== undefined && { task }),
  };
}

/** The status when something stands in the way: what was known stays. */
export function troubled(group: VmGroup, trouble: Trouble, now: number): VmGroupStatus {
  const { reason, message, isUnknown, isPassing } = trouble;
  const ready = { status: isUnknown ? 'Unknown' : 'False', reason, message } as const;
  const status = { ...group.status, desiredReplicas: group.spec.replicas };
  return told(group, status, now, isPassing ? 'PENDING' : 'ERROR', ready);
}

/** The status of a group that is being deleted. */
export function departing(group: VmGroup, message: string, now: number): VmGroupStatus {
  return told(group, group.status ?? {}, now, 'PENDING', { status: 'False', reason: 'Deleting', message });
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
