import { type Condition, setCondition } from '@vmwright/runtime';
import { heldTrouble } from './held.ts';
import type { Replica, VmGroup, VmGroupStatus } from './resource.ts';
import { type Doing, isFromTemplate, isReady, isSized, type Machine, type Seen, type Slot } from './slots.ts';
import type { Trouble } from './trouble.ts';

const DONE = 'successfully reconciled VmGroup';

/** The status with what is being done by now. */
export function withTasks(status: VmGroupStatus, busy: ReadonlyMap<number, Doing>): VmGroupStatus {
  const replicas = status.replicas?.map(({ task: _, ...replica }) => {
    const task = busy.get(replica.slot)?.task;
    return { ...replica, ...(task !== undefined && { task }) };
  });
  return { ...status, ...(replicas && { replicas }) };
}

/** The status that describes these slots. */
export function observed(group: VmGroup, seen: Seen, slots: readonly Slot[], now: number): VmGroupStatus {
  const { spec, metadata } = group;
  const machines = slots.flatMap(({ machine }) => machine ?? []);
  const ready = slots.filter(isReady).length;
  const isCurrent = (machine: Machine) => isFromTemplate(group, seen, machine) && isSized(group, machine);
  const updated = slots.filter(({ machine, replica }) => machine && !replica.leaving && isCurrent(machine));
  const isUpdated = updated.length === spec.replicas || spec.update?.strategy === 'OnDelete';
  const isComplete = machines.length === spec.replicas && slots.length === spec.replicas;
  const held = heldTrouble(slots, seen);
  const trouble = held ?? seen.trouble;
  const isDone = isComplete && ready === spec.replicas && isUpdated && held === undefined;
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
  if (trouble !== undefined) return troubled({ ...group, status }, trouble, now);
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
  const { name = replica.name, power, ip, host } = machine ?? {};
  const task = doing?.task;
  return {
    ...kept,
    name,
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
