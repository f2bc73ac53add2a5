import { heldTrouble } from './held.ts';
import { MB_IN_GIB } from './memory.ts';
import { instanceUuid, replicaName } from './names.ts';
import { type Replacing, replaceRequested } from './replacement.ts';
import type { Replica, VmGroup, VmGroupStatus } from './resource.ts';
import {
  type Action,
  isFromTemplate,
  isHeld,
  isReady,
  isSized,
  type Machine,
  mayExist,
  type Seen,
  type Slot,
} from './slots.ts';
import { departing, observed } from './status.ts';
import type { Trouble } from './trouble.ts';

export interface Plan {
  /** What is stored before anything is done. */
  readonly status: VmGroupStatus;
  /** In the order of their worth, where not all can be done at a time. */
  readonly actions: readonly Action[];
  /** Why the group is not as wanted: one event for each. */
  readonly troubles: readonly Trouble[];
  /** After which it is to be looked at again, though nothing may happen. */
  readonly againMs?: number | undefined;
}

/** Between the clocks of two replicas. */
const MOST_SKEW_MS = 60_000;

/**
 * What to do next for a group that is wanted, and its status.
 *
 * Each machine has a slot, which is stored before the machine is asked for, and marked as leaving before the machine is
 * removed. A slot that leaves never comes back: another machine gets another slot. It is dropped when its machine is
 * confirmed gone. There are never more slots than wanted machines, except for those that leave.
 */
export function plan(group: VmGroup, seen: Seen, now: number): Plan {
  const { slots, replacing, ...decided } = decide(group, seen, now);
  const { replacing: _, ...status } = observed(group, seen, slots, now);
  return { ...decided, status: { ...status, ...(replacing && { replacing }) } };
}

/** The same for a group that is being deleted: none of its machines is wanted. */
export function planDeletion(group: VmGroup, seen: Seen, message: string, now: number): Plan {
  const none = { ...group, spec: { ...group.spec, replicas: 0 } };
  const { slots, replacing: _, ...decided } = decide(none, seen, now);
  const status = observed(none, seen, slots, now);
  const said = (heldTrouble(slots, seen) ?? seen.troubles.at(-1))?.message ?? message;
  return { ...decided, status: departing({ ...group, status }, said, now) };
}

/** The status of a paused group: what is observed, without any decision. No slot is added, dropped or given up. */
export function observePaused(group: VmGroup, seen: Seen, now: number): VmGroupStatus {
  const slots = [...known(group, seen, now).values()].map(
    (replica): Slot => ({
      replica,
      machine: seen.machines.find(({ slot }) => slot === replica.slot),
      doing: seen.busy.get(replica.slot),
    }),
  );
  return observed(
    group,
    seen,
    slots.sort((a, b) => a.replica.slot - b.replica.slot),
    now,
  );
}

interface Decision extends Omit<Plan, 'status'> {
  readonly slots: readonly Slot[];
  readonly replacing: Replacing | undefined;
}

function decide(group: VmGroup, seen: Seen, now: number): Decision {
  const scaledSlots = scaled(group, seen, now);
  const request = replaceRequested(group, seen, scaledSlots, spareOf(group, scaledSlots));
  const slots = rollOut(group, seen, request.slots)
    .map((slot) => staying(group, slot))
    .map((slot) => withOffSince(group, slot, now));
  return {
    slots,
    replacing: request.replacing,
    troubles: [...request.troubles, ...seen.troubles, ...[heldTrouble(slots, seen) ?? []].flat()],
    actions: actionsFor(group, seen, slots, now),
    againMs: earliest(patienceLeft(group, slots, now), offGraceLeft(slots, now)),
  };
}

/** The slots that there shall be, with those that leave. */
function scaled(group: VmGroup, seen: Seen, now: number): readonly Slot[] {
  const { spec } = group;
  const machines = new Map(seen.machines.map((machine) => [machine.slot, machine]));
  const replicas = known(group, seen, now);
  const slots: Slot[] = [];
  for (const replica of replicas.values()) {
    const { slot } = replica;
    const [machine, doing] = [machines.get(slot), seen.busy.get(slot)];
    const isGone = replica.leaving === true && machine === undefined && doing === undefined;
    if (!isGone || mayExist(replica, seen)) slots.push({ replica, machine, doing });
  }
  const surplus = slots.filter(({ replica }) => !replica.leaving).length - spec.replicas;
  const victims = new Set(surplus > 0 ? inOrderOfLeaving(group, slots).slice(0, surplus) : []);
  const isThere = ({ replica, machine, doing }: Slot) =>
    machine !== undefined || doing !== undefined || mayExist(replica, seen);
  const kept = slots.flatMap((slot) => (victims.has(slot) ? (isThere(slot) ? leaving(slot) : []) : slot));
  const added: Slot[] = [];
  for (let slot = 0; kept.length + added.length < spec.replicas; slot++)
    if (!replicas.has(slot))
      added.push({ replica: decided(group, slot, now), machine: undefined, doing: seen.busy.get(slot) });
  return [...kept, ...added].sort((a, b) => a.replica.slot - b.replica.slot);
}

/**
 * The stored slots by their numbers, and those of machines that the status does not list: a clone that came late, after
 * its slot was given up, or a status that was lost.
 */
function known(group: VmGroup, { machines }: Seen, now: number): Map<number, Replica> {
  const known = new Map((group.status?.replicas ?? []).map((replica) => [replica.slot, replica]));
  for (const { slot } of machines)
    if (!known.has(slot)) known.set(slot, { ...decided(group, slot, now), attempts: 1 });
  return known;
}

/** Those that are to be replaced leave, as many at a time as may be away; none does for a template that is not there. */
function rollOut(group: VmGroup, seen: Seen, slots: readonly Slot[]): readonly Slot[] {
  const { spec } = group;
  if (spec.update?.strategy === 'OnDelete' || !seen.isTemplateThere || seen.isCloningAtRest) return slots;
  let budget = spareOf(group, slots);
  return slots.map((slot) => {
    const { machine, replica } = slot;
    // Of one that vCenter has lost touch with nobody can say that it is away: it waits for its host.
    const isOld = machine?.isConnected === true && !isHeld(machine) && !isFromTemplate(group, seen, machine);
    if (!isOld || replica.leaving || seen.resting.has(replica.slot)) return slot;
    if (isReady(slot) && budget-- <= 0) return slot;
    return leaving(slot);
  });
}

function actionsFor(group: VmGroup, seen: Seen, slots: readonly Slot[], now: number): readonly Action[] {
  const isRolling = group.spec.update?.strategy !== 'OnDelete';
  const softly = (slot: Slot, then: Action & { readonly do: 'remove' | 'resize' }): readonly Action[] => {
    const { slot: number, shutdownAt } = slot.replica;
    const isAsked = shutdownAt !== undefined;
    if (slot.machine?.power !== 'poweredOn' || patienceOf(group) === 0) return [then];
    if (!isAsked) return [{ do: 'shutDown', slot: number, id: then.id }];
    return endOfPatience(group, shutdownAt, now) <= now ? [then] : [];
  };
  let budget = spareOf(group, slots);
  const actions = slots.flatMap((slot): readonly Action[] => {
    const { replica, machine, doing } = slot;
    const { slot: number, instanceUuid } = replica;
    if (doing !== undefined || seen.resting.has(number)) return [];
    if (machine === undefined) {
      if (replica.leaving) return [{ do: 'lookUp', slot: number, instanceUuid }];
      if (seen.isCloningAtRest) return [];
      const again = (replica.attempts ?? 0) > 0;
      // Not by the name in the status, which people can change: one name per slot prevents a second machine.
      return [{ do: 'clone', slot: number, name: replicaName(group, number), instanceUuid, again }];
    }
    const { id, power } = machine;
    if (replica.leaving) {
      if (isHeld(machine)) return [];
      return softly(slot, { do: 'remove', slot: number, id, isOn: power !== 'poweredOff' });
    }
    if (!machine.isConnected || machine.isTemplate) return []; // people have to repair that first
    const isOn = power === 'poweredOn';
    const isToStay = !isRolling || isSized(group, machine) || seen.inVain.has(number);
    if (isToStay) {
      const isGraceOver = (offGraceLeft([slot], now) ?? 0) <= 0;
      return isOn || !isGraceOver ? [] : [{ do: 'powerOn', slot: number, id }];
    }
    if (canChangeRunning(group, machine)) return [{ do: 'reconfigure', slot: number, id }];
    // Who does not run takes nothing away from the others.
    const resize = { do: 'resize', slot: number, id, isOn: power !== 'poweredOff' } as const;
    return !isReady(slot) || budget-- > 0 ? softly(slot, resize) : [];
  });
  return actions.sort((a, b) => WORTH.indexOf(a.do) - WORTH.indexOf(b.do));
}

const WORTH: readonly Action['do'][] = [
  ...(['powerOn', 'reconfigure', 'lookUp', 'shutDown', 'remove', 'clone', 'resize'] as const),
];

/** A guest that was asked to shut itself down, and need not any more, is as good as any: should it do so, it is switched on. */
function staying(group: VmGroup, slot: Slot): Slot {
  const { shutdownAt, ...replica } = slot.replica;
  const { machine } = slot;
  const isRolling = group.spec.update?.strategy !== 'OnDelete';
  const isToGo = replica.leaving || (machine !== undefined && isRolling && !isSized(group, machine));
  return shutdownAt === undefined || (isToGo && machine?.power === 'poweredOn') ? slot : { ...slot, replica };
}

/**
 * With OnDelete an administrator powers a machine off to delete it, so that the group makes another: such a machine is
 * left off for a while. One that never ran is powered on at once.
 */
const OFF_GRACE_MS = 5 * 60_000;

function withOffSince({ spec }: VmGroup, slot: Slot, now: number): Slot {
  const { offSince, ...replica } = slot.replica;
  const isOff = slot.machine?.power === 'poweredOff' && slot.doing === undefined && !replica.leaving;
  const isLeftOff = spec.update?.strategy === 'OnDelete' && isOff;
  const since = offSince ?? (replica.power === 'poweredOn' ? new Date(now).toISOString() : undefined);
  return { ...slot, replica: { ...replica, ...(isLeftOff && since !== undefined && { offSince: since }) } };
}

/** Until the first of the machines that are left off is powered on; 0 where that is due. */
function offGraceLeft(slots: readonly Slot[], now: number): number | undefined {
  const left = slots.flatMap(({ replica: { offSince } }) => {
    if (offSince === undefined) return [];
    const sinceMs = Date.parse(offSince);
    return sinceMs > now + MOST_SKEW_MS ? 0 : Math.max(0, sinceMs + OFF_GRACE_MS - now);
  });
  return left.length === 0 ? undefined : Math.min(...left);
}

/** Only what is still to come: what is due is done now, and must not enqueue the group again. */
function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const left = times.filter((time) => time !== undefined && time > 0);
  return left.length === 0 ? undefined : Math.min(...left.flatMap((time) => time ?? []));
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

/**
 * Milliseconds until the first guest that was asked to shut down has had its time. A deadline that has passed does not
 * count: the action that follows it is begun, or waits for something that enqueues the group when it comes.
 */
function patienceLeft(group: VmGroup, slots: readonly Slot[], now: number): number | undefined {
  const left = slots.flatMap(({ replica: { shutdownAt }, machine }) => {
    if (shutdownAt === undefined || machine?.power !== 'poweredOn') return [];
    const ms = endOfPatience(group, shutdownAt, now) - now;
    return ms > 0 ? ms : [];
  });
  return left.length === 0 ? undefined : Math.min(...left);
}

/** Those that may leave, first those that leave first. */
function inOrderOfLeaving({ spec }: VmGroup, slots: readonly Slot[]): readonly Slot[] {
  const { scaleIn = 'NotReadyFirst' } = spec;
  const age = (a: Slot, b: Slot) =>
    a.replica.created.localeCompare(b.replica.created) || a.replica.slot - b.replica.slot;
  // Also before those that run: a machine that people took over is not under the group's control.
  const isThere = ({ machine, doing }: Slot) =>
    Number(doing !== undefined || (machine !== undefined && !isHeld(machine)));
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
