import type { ConditionError } from '../vcenter/errors.ts';
import { instanceUuid } from '../vcenter/ownership.ts';
import { takenOverError } from './errors.ts';
import { replicaName } from './identity.ts';
import { MB_IN_GIB } from './memory.ts';
import { type Replacing, replaceRequested } from './replacement.ts';
import type { Replica, VmGroup, VmGroupStatus } from './resource.ts';
import {
  type Action,
  type ActionType,
  isFromTemplate,
  isReady,
  isSized,
  isTakenOver,
  type Machine,
  mayExist,
  type Observed,
  type Slot,
} from './slots.ts';
import { deletingStatus, observedStatus, type PlannedStatus } from './status.ts';

export interface Plan extends PlannedStatus {
  /** Operations to start after the status is stored, most urgent first. Some of them may have to wait for a permit. */
  readonly actions: readonly Action[];
  /**
   * Reasons why the group does not match its spec. One event is recorded per cause, but none for an error with
   * `isProgressing`.
   */
  readonly errors: readonly ConditionError[];
  /** Time in milliseconds after which the group is reconciled again even without an event. @default none */
  readonly requeueAfterMs?: number | undefined;
}

/** Largest expected difference between the clocks of two replicas of the operator. */
const MAX_CLOCK_SKEW_MS = 60_000;

/**
 * Plans the next actions of a group, and its status. Each machine has a slot:
 * - The slot is stored before the machine is cloned.
 * - The slot is stored as terminating before the machine is removed. A terminating slot is not reused: a new machine
 *   gets another slot.
 * - The slot is dropped when its machine is confirmed gone.
 *
 * Not counting terminating slots, a group never has more slots than desired machines.
 */
export function plan(group: VmGroup, observed: Observed, now: number): Plan {
  const { slots, replacing, ...decided } = decide(group, observed, now);
  const withRequest = ({ replacing: _, ...status }: VmGroupStatus): VmGroupStatus => ({
    ...status,
    ...(replacing && { replacing }),
  });
  const { status, waitingStatus } = observedStatus(group, observed, slots, now);
  return { ...decided, status: withRequest(status), waitingStatus: withRequest(waitingStatus) };
}

/** Plans the deletion of a group: all machines are removed. */
export function planDeletion(group: VmGroup, observed: Observed, message: string, now: number): Plan {
  const empty = { ...group, spec: { ...group.spec, replicas: 0 } };
  const { slots, replacing: _, ...decided } = decide(empty, observed, now);
  const { status } = observedStatus(empty, observed, slots, now);
  const error = takenOverError(slots, observed) ?? observed.errors.at(-1);
  return { ...decided, ...deletingStatus({ ...group, status }, error?.message ?? message, now) };
}

/** Returns the status of a paused group, which only reports what is observed. No slot is added or dropped. */
export function observePaused(group: VmGroup, observed: Observed, now: number): VmGroupStatus {
  const slots = [...knownReplicas(group, observed, now).values()].map(
    (replica): Slot => ({
      replica,
      machine: observed.machines.find(({ slot }) => slot === replica.slot),
      operating: observed.operating.get(replica.slot),
    }),
  );
  return observedStatus(group, observed, slots.sort(bySlot), now).status;
}

interface Decision extends Omit<Plan, keyof PlannedStatus> {
  readonly slots: readonly Slot[];
  readonly replacing: Replacing | undefined;
}

function decide(group: VmGroup, observed: Observed, now: number): Decision {
  const scaled = scaledSlots(group, observed, now);
  const request = replaceRequested(group, observed, scaled, unavailableBudget(group, scaled));
  const slots = rolledOut(group, observed, request.slots)
    .map((slot) => withoutStaleShutdown(group, slot))
    .map((slot) => withOffSince(group, slot, now));
  const takenOver = takenOverError(slots, observed);
  return {
    slots,
    replacing: request.replacing,
    errors: [...request.errors, ...observed.errors, ...(takenOver ? [takenOver] : [])],
    actions: actionsFor(group, observed, slots, now),
    requeueAfterMs: earliest(gracePeriodLeft(group, slots, now), offGraceLeft(slots, now)),
  };
}

/** Returns the slots after scaling out and in, including terminating slots. */
function scaledSlots(group: VmGroup, observed: Observed, now: number): readonly Slot[] {
  const { spec } = group;
  const machines = new Map(observed.machines.map((machine) => [machine.slot, machine]));
  const replicas = knownReplicas(group, observed, now);
  const slots: Slot[] = [];
  for (const replica of replicas.values()) {
    const { slot } = replica;
    const [machine, operating] = [machines.get(slot), observed.operating.get(slot)];
    const isEmpty = replica.terminating === true && machine === undefined && operating === undefined;
    if (!isEmpty || mayExist(replica, observed)) slots.push({ replica, machine, operating });
  }
  const surplus = slots.filter(({ replica }) => !replica.terminating).length - spec.replicas;
  const victims = new Set(surplus > 0 ? inScaleInOrder(group, slots).slice(0, surplus) : []);
  const exists = ({ replica, machine, operating }: Slot) =>
    machine !== undefined || operating !== undefined || mayExist(replica, observed);
  const kept = slots.flatMap((slot) => (victims.has(slot) ? (exists(slot) ? terminating(slot) : []) : slot));
  const added: Slot[] = [];
  for (let slot = 0; kept.length + added.length < spec.replicas; slot++)
    if (!replicas.has(slot))
      added.push({
        replica: newReplica(group, slot, now),
        machine: undefined,
        operating: observed.operating.get(slot),
      });
  return [...kept, ...added].sort(bySlot);
}

/**
 * Returns the stored replicas by slot, and a replica for each machine that the status lacks. The status lacks a machine
 * if its clone finished after the slot was dropped, or if the status was lost.
 */
function knownReplicas(group: VmGroup, { machines }: Observed, now: number): Map<number, Replica> {
  const { uid = '' } = group.metadata;
  // The UUID is derived instead of read from the status, because users can edit the status.
  const stored = (replica: Replica) => ({ ...replica, instanceUuid: instanceUuid(uid, replica.slot) });
  const replicas = new Map<number, Replica>(
    (group.status?.replicas ?? []).map((replica) => [replica.slot, stored(replica)]),
  );
  for (const { slot } of machines)
    if (!replicas.has(slot)) replicas.set(slot, { ...newReplica(group, slot, now), attempts: 1 });
  return replicas;
}

/**
 * Terminates machines of an old template, within maxUnavailable. No machine is removed before the new template is
 * found, or while clones back off.
 */
function rolledOut(group: VmGroup, observed: Observed, slots: readonly Slot[]): readonly Slot[] {
  const { spec } = group;
  const canClone = observed.isTemplateFound && !observed.areClonesBackingOff;
  if (spec.update?.strategy === 'OnDelete' || !canClone) return slots;
  let budget = unavailableBudget(group, slots);
  return slots.map((slot) => {
    const { machine, replica } = slot;
    // A disconnected machine may still run, so it is replaced only after its host has reconnected.
    const isOld =
      machine?.isConnected === true && !isTakenOver(machine) && !isFromTemplate(group, observed, machine);
    if (!isOld || replica.terminating || observed.backingOff.has(replica.slot)) return slot;
    if (isReady(slot) && budget-- <= 0) return slot;
    return terminating(slot);
  });
}

function actionsFor(
  group: VmGroup,
  observed: Observed,
  slots: readonly Slot[],
  now: number,
): readonly Action[] {
  const isRolling = group.spec.update?.strategy !== 'OnDelete';
  const afterShutdown = (
    slot: Slot,
    then: Action & { readonly type: 'remove' | 'resize' },
  ): readonly Action[] => {
    const { slot: number, shutdownAt } = slot.replica;
    if (slot.machine?.power !== 'poweredOn' || gracePeriodOf(group) === 0) return [then];
    if (shutdownAt === undefined) return [{ type: 'shutDown', slot: number, id: then.id }];
    return endOfGracePeriod(group, shutdownAt, now) <= now ? [then] : [];
  };
  let budget = unavailableBudget(group, slots);
  const actions = slots.flatMap((slot): readonly Action[] => {
    const { replica, machine, operating } = slot;
    const { slot: number, instanceUuid } = replica;
    if (operating !== undefined || observed.backingOff.has(number)) return [];
    if (machine === undefined) {
      if (replica.terminating) return [{ type: 'lookUp', slot: number, instanceUuid }];
      if (observed.areClonesBackingOff) return [];
      const isRetry = (replica.attempts ?? 0) > 0;
      // The name is derived instead of read from the status, because users can edit the status. So a repeated clone has
      // the same name, and vCenter rejects it.
      return [{ type: 'clone', slot: number, name: replicaName(group, number), instanceUuid, isRetry }];
    }
    const { id, power } = machine;
    if (replica.terminating) {
      if (isTakenOver(machine)) return [];
      return afterShutdown(slot, { type: 'remove', slot: number, id, isOn: power !== 'poweredOff' });
    }
    // No action helps: only people can reconnect the host of the machine, or convert the template back to a machine.
    if (!machine.isConnected || machine.isTemplate) return [];
    const isOn = power === 'poweredOn';
    const keepsSize = !isRolling || isSized(group, machine) || observed.resizeRejected.has(number);
    if (keepsSize) {
      const isGraceOver = (offGraceLeft([slot], now) ?? 0) <= 0;
      return isOn || !isGraceOver ? [] : [{ type: 'powerOn', slot: number, id }];
    }
    if (canHotAdd(group, machine)) return [{ type: 'reconfigure', slot: number, id }];
    // A machine that is not ready is already unavailable, so its resize does not use up maxUnavailable.
    const resize = { type: 'resize', slot: number, id, isOn: power !== 'poweredOff' } as const;
    return !isReady(slot) || budget-- > 0 ? afterShutdown(slot, resize) : [];
  });
  return actions.sort((a, b) => URGENCY.indexOf(a.type) - URGENCY.indexOf(b.type));
}

/** Types of actions, most urgent first. */
const URGENCY: readonly ActionType[] = [
  ...(['powerOn', 'reconfigure', 'lookUp', 'shutDown', 'remove', 'clone', 'resize'] as const),
];

/**
 * Drops `shutdownAt` when the shutdown has ended or is no longer needed. If the guest shuts down nevertheless, the
 * machine is powered on again.
 */
function withoutStaleShutdown(group: VmGroup, slot: Slot): Slot {
  const { shutdownAt, ...replica } = slot.replica;
  const { machine } = slot;
  const isRolling = group.spec.update?.strategy !== 'OnDelete';
  const isNeeded = replica.terminating || (machine !== undefined && isRolling && !isSized(group, machine));
  return shutdownAt === undefined || (isNeeded && machine?.power === 'poweredOn')
    ? slot
    : { ...slot, replica };
}

/**
 * Time for which a machine that was powered off stays off with the update strategy OnDelete. In this time, an
 * administrator can delete the machine to get a new one. A machine that never ran is powered on immediately.
 */
const OFF_GRACE_MS = 5 * 60_000;

function withOffSince({ spec }: VmGroup, slot: Slot, now: number): Slot {
  const { offSince, ...replica } = slot.replica;
  const isOff = slot.machine?.power === 'poweredOff' && slot.operating === undefined && !replica.terminating;
  const isLeftOff = spec.update?.strategy === 'OnDelete' && isOff;
  const since = offSince ?? (replica.power === 'poweredOn' ? new Date(now).toISOString() : undefined);
  return { ...slot, replica: { ...replica, ...(isLeftOff && since !== undefined && { offSince: since }) } };
}

/**
 * Returns the time until the first machine with `offSince` is powered on; 0 if it is due now, undefined if there is no
 * such machine.
 */
function offGraceLeft(slots: readonly Slot[], now: number): number | undefined {
  const left = slots.flatMap(({ replica: { offSince } }) => {
    if (offSince === undefined) return [];
    const sinceMs = Date.parse(offSince);
    return sinceMs > now + MAX_CLOCK_SKEW_MS ? 0 : Math.max(0, sinceMs + OFF_GRACE_MS - now);
  });
  return left.length === 0 ? undefined : Math.min(...left);
}

/** Returns the shortest positive time. Ignores 0, because an action that is due now needs no later reconcile. */
function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const left = times.flatMap((time) => (time !== undefined && time > 0 ? time : []));
  return left.length === 0 ? undefined : Math.min(...left);
}

/** Returns the time at which a machine is powered off if its guest has not shut down by then. */
function endOfGracePeriod(group: VmGroup, shutdownAt: string, now: number): number {
  const askedAt = Date.parse(shutdownAt);
  // A time in the future means that the clock was set back. The elapsed time is then unknown, so the grace period ends.
  return askedAt > now + MAX_CLOCK_SKEW_MS ? now : askedAt + gracePeriodOf(group);
}

function gracePeriodOf({ spec: { shutdownSeconds = 0 } }: VmGroup): number {
  return shutdownSeconds * 1_000;
}

/**
 * Returns the time until the first grace period ends. Ignores grace periods that have ended. They need no requeue: the
 * action that waited for the shutdown starts now, or an event enqueues the group.
 */
function gracePeriodLeft(group: VmGroup, slots: readonly Slot[], now: number): number | undefined {
  const left = slots.flatMap(({ replica: { shutdownAt }, machine }) => {
    if (shutdownAt === undefined || machine?.power !== 'poweredOn') return [];
    const ms = endOfGracePeriod(group, shutdownAt, now) - now;
    return ms > 0 ? ms : [];
  });
  return left.length === 0 ? undefined : Math.min(...left);
}

/** Returns the slots that scale-in may terminate, in the order in which they are terminated. */
function inScaleInOrder({ spec }: VmGroup, slots: readonly Slot[]): readonly Slot[] {
  const { scaleIn = 'NotReadyFirst' } = spec;
  const age = (a: Slot, b: Slot) =>
    a.replica.created.localeCompare(b.replica.created) || a.replica.slot - b.replica.slot;
  // Slots without a machine that the group controls come first: empty slots, and slots of machines that people took
  // over.
  const isControlled = ({ machine, operating }: Slot) =>
    Number(operating !== undefined || (machine !== undefined && !isTakenOver(machine)));
  const readiness = (a: Slot, b: Slot) =>
    isControlled(a) - isControlled(b) ||
    (scaleIn === 'NotReadyFirst' ? Number(isReady(a)) - Number(isReady(b)) : 0);
  return slots
    .filter(({ replica }) => !replica.terminating)
    .sort((a, b) => readiness(a, b) || (scaleIn === 'Oldest' ? age(a, b) : age(b, a)));
}

/** Returns how many more machines may become unavailable under maxUnavailable. */
function unavailableBudget({ spec }: VmGroup, slots: readonly Slot[]): number {
  const { maxUnavailable = 1 } = spec.update ?? {};
  const limit =
    typeof maxUnavailable === 'number'
      ? maxUnavailable
      : Math.max(1, Math.floor((Number.parseInt(maxUnavailable, 10) * spec.replicas) / 100));
  return limit - (spec.replicas - slots.filter(isReady).length);
}

/** Whether the machine runs and vCenter can change it to the size in the spec without a restart. */
function canHotAdd({ spec }: VmGroup, { power, cpus, memoryMb, hotAdd }: Machine): boolean {
  const wantedMb = spec.memory * MB_IN_GIB;
  return (
    power === 'poweredOn' &&
    (cpus === spec.cpu || (cpus < spec.cpu && hotAdd.cpus)) &&
    (memoryMb === wantedMb || (memoryMb < wantedMb && wantedMb <= hotAdd.maxMemoryMb))
  );
}

function terminating(slot: Slot): Slot {
  return { ...slot, replica: { ...slot.replica, terminating: true } };
}

function newReplica(group: VmGroup, slot: number, now: number): Replica {
  const wasUsed = slot < (group.status?.slotsUsed ?? 0);
  return {
    slot,
    name: replicaName(group, slot),
    instanceUuid: instanceUuid(group.metadata.uid ?? '', slot),
    created: new Date(now).toISOString(),
    // An earlier machine of the slot may exist outside the inventory. With `attempts`, the first clone counts as a
    // retry, and a retry first looks up the machine by its UUID.
    ...(wasUsed && { attempts: 1 }),
  };
}

function bySlot(a: Slot, b: Slot): number {
  return a.replica.slot - b.replica.slot;
}

/**
 * Returns the status to store right before these actions start. Each clone and each removal increases `attempts`, so
 * the status is always written before them. The API server rejects the write if the operator has an old version of the
 * group.
 */
export function withAttempts(status: VmGroupStatus, actions: readonly Action[], now: number): VmGroupStatus {
  const types = new Map(actions.map((action) => [action.slot, action.type]));
  const counted = (replica: Replica): Replica => {
    const { slot, attempts = 0 } = replica;
    const type = types.get(slot);
    if (type === 'clone' || type === 'remove') return { ...replica, attempts: attempts + 1 };
    if (type === 'shutDown') return { ...replica, shutdownAt: new Date(now).toISOString() };
    if (type !== 'resize') return replica;
    const { shutdownAt: _, ...others } = replica; // the shutdown has ended: the resize powers the machine on again
    return others;
  };
  return { ...status, ...(status.replicas && { replicas: status.replicas.map(counted) }) };
}
