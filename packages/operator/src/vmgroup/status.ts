import { type Condition, removeCondition, setCondition, withOutcome, withPaused } from '@vmwright/runtime';
import { isPaused, pauseOf } from '../annotations.ts';
import type { ConditionError } from '../vcenter/errors.ts';
import type { VmGroupOutcome } from './conditions.ts';
import { takenOverError } from './errors.ts';
import type { Replica, VmGroup, VmGroupStatus } from './resource.ts';
import {
  isFromTemplate,
  isReady,
  isSized,
  type Machine,
  type Observed,
  type Operating,
  type Slot,
} from './slots.ts';

const DONE = 'successfully reconciled VmGroup';
const WAITING = 'waiting for a vCenter task slot';

/** Type of the condition that says whether the operator can use the group's vCenter. */
const VCENTER_AVAILABLE = 'VCenterAvailable';

/**
 * A status, and the status to store instead if actions wait for a permit. They differ only for a group that is
 * progressing.
 */
export interface PlannedStatus {
  readonly status: VmGroupStatus;
  readonly waitingStatus: VmGroupStatus;
}

type Phase = NonNullable<VmGroupStatus['phase']>;

/** Returns the status with the vCenter tasks in flight. */
export function withTasks(status: VmGroupStatus, operating: ReadonlyMap<number, Operating>): VmGroupStatus {
  const replicas = status.replicas?.map(({ task: _, ...replica }) => {
    const task = operating.get(replica.slot)?.task;
    return { ...replica, ...(task !== undefined && { task }) };
  });
  return { ...status, ...(replicas && { replicas }) };
}

/** Returns the status of a group with these slots. A stable group has the same status on every reconcile. */
export function observedStatus(
  group: VmGroup,
  observed: Observed,
  slots: readonly Slot[],
  now: number,
): PlannedStatus {
  const { spec, metadata } = group;
  const machines = slots.flatMap(({ machine }) => machine ?? []);
  const ready = slots.filter(isReady).length;
  const isCurrent = (machine: Machine) => isFromTemplate(group, observed, machine) && isSized(group, machine);
  const updated = slots.filter(
    ({ machine, replica }) => machine && !replica.terminating && isCurrent(machine),
  );
  const isUpdated = updated.length === spec.replicas || spec.update?.strategy === 'OnDelete';
  const isComplete = machines.length === spec.replicas && slots.length === spec.replicas;
  const takenOver = takenOverError(slots, observed);
  const error = takenOver ?? observed.errors.at(-1);
  const isDone = isComplete && ready === spec.replicas && isUpdated && takenOver === undefined;
  const [current, desired] = [machines.length, spec.replicas];
  const status: VmGroupStatus = {
    ...group.status,
    currentReplicas: current,
    desiredReplicas: desired,
    readyReplicas: ready,
    updatedReplicas: updated.length,
    selector: `vmwright.dev/vmgroup=${metadata.name.slice(0, 63).replace(/[^a-z0-9]+$/, '')}`,
    replicas: slots.map(reportedReplica),
    slotsUsed: Math.max(group.status?.slotsUsed ?? 0, ...slots.map(({ replica }) => replica.slot + 1)),
  };
  const counted = { ...group, status };
  const availability = observed.isUnplaced ? 'unknown' : 'available';
  const report = (phase: Phase, outcome: VmGroupOutcome) =>
    withVcenterAvailable(counted, reported(counted, now, phase, outcome), availability, now);
  if (isDone) return always(report('RUNNING', { state: 'ready', reason: 'Running', message: DONE }));
  // The reconcile has observed the machines. So their state is known, even if an operation failed in an outage.
  if (error !== undefined) return always(report(...outcomeOf({ ...error, isUnknown: false })));
  const message =
    current !== desired
      ? `${current} of ${desired} machines exist`
      : ready !== desired
        ? `${ready} of ${desired} machines run`
        : slots.length !== desired
          ? 'confirming that removed machines are gone'
          : `${updated.length} of ${desired} machines are up to date`;
  const progressing = { state: 'progressing', reason: 'Progressing' } as const;
  return orWaiting(message, (text) => report('PENDING', { ...progressing, message: text }));
}

function reportedReplica({ replica, machine, operating }: Slot): Replica {
  const { power: _, ip: __, host: ___, task: ____, shutdownAt, ...kept } = replica;
  const { name = replica.name, power, ip, host } = machine ?? {};
  const task = operating?.task;
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

/** Returns the status of a group that could not be observed. Keeps earlier observations. */
export function failedStatus(group: VmGroup, error: ConditionError, now: number): VmGroupStatus {
  const desired = { ...group, status: { ...group.status, desiredReplicas: group.spec.replicas } };
  const status = reported(desired, now, ...outcomeOf(error));
  return withVcenterAvailable(group, status, error.isUnknown ? error : 'unknown', now);
}

function outcomeOf({
  reason,
  message,
  isUnknown = false,
  isProgressing,
  retryable,
}: ConditionError): [Phase, VmGroupOutcome] {
  const state = isProgressing || retryable ? 'progressing' : 'stalled';
  return [isProgressing ? 'PENDING' : 'ERROR', { state, reason, message, isUnknown }];
}

/** Returns the status of a group that is being deleted. */
export function deletingStatus(group: VmGroup, message: string, now: number): PlannedStatus {
  const text = isPaused(group) ? `the deletion is paused; ${message}` : message;
  return orWaiting(text, (shown) =>
    reported(group, now, 'PENDING', { state: 'progressing', reason: 'Deleting', message: shown }),
  );
}

function always(status: VmGroupStatus): PlannedStatus {
  return { status, waitingStatus: status };
}

function orWaiting(message: string, report: (message: string) => VmGroupStatus): PlannedStatus {
  return { status: report(message), waitingStatus: report(`${message}; ${WAITING}`) };
}

/**
 * Returns the status with the condition VCenterAvailable, or without it if the availability is `unknown`.
 * @param availability `available`: the inventory is current; an error: vCenter has an outage; `unknown`: the reconcile
 * ended before it reached vCenter
 */
export function withVcenterAvailable(
  { metadata: { generation } }: VmGroup,
  status: VmGroupStatus,
  availability: 'available' | 'unknown' | ConditionError,
  now: number,
): VmGroupStatus {
  const { conditions } = status;
  if (availability === 'unknown')
    return conditions === undefined
      ? status
      : { ...status, conditions: removeCondition(conditions, VCENTER_AVAILABLE) };
  const condition: Omit<Condition, 'lastTransitionTime'> = {
    type: VCENTER_AVAILABLE,
    ...(availability === 'available'
      ? { status: 'True', reason: 'Connected', message: 'vCenter responds and its inventory is current' }
      : {
          status: availability.isProgressing ? 'Unknown' : 'False',
          reason: availability.reason,
          message: availability.message,
        }),
    ...(generation !== undefined && { observedGeneration: generation }),
  };
  return { ...status, conditions: setCondition(conditions, condition, now) };
}

function reported(group: VmGroup, now: number, phase: Phase, outcome: VmGroupOutcome): VmGroupStatus {
  const isHalted = isPaused(group) && group.metadata.deletionTimestamp === undefined;
  const message = isHalted ? `paused; ${outcome.message}` : outcome.message;
  const status = withOutcome(
    group,
    { ...group.status, phase, lastMessage: message },
    { ...outcome, message },
    now,
  );
  return withPaused(group, status, pauseOf(group), now);
}
