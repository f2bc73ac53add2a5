import type { Server } from '@vmwright/cloud';
import { conditionOf, exponentialMs, setCondition, withOutcome, withPaused } from '@vmwright/runtime';
import { mayRecreate, pauseOf, RECREATE } from '../annotations.ts';
import type { VmOutcome } from './conditions.ts';
import type { ConditionError } from './errors.ts';
import { isOwnedBy, UID_LABEL } from './identity.ts';
import type { NameRejection } from './observe.ts';
import { hasVmId, type VM, type VMStatus } from './resource.ts';

/* The status of a VM in each situation. Messages are the same on every retry, so a retry does not write the status. */

/** Returns the status of a VM that has this server as its machine. */
export function machineStatus(vm: VM, server: Server, now: number): VMStatus {
  const { id, state, cpuUtilization, message } = server;
  const known = { ...withNameAccepted(vm, without(vm.status, 'VmLost'), now), vmId: id };
  switch (state) {
    case 'building':
      return answered(
        vm,
        now,
        { ...known, opStatus: 'New' },
        { state: 'progressing', reason: 'Building', message: 'The cloud is creating the machine' },
      );
    case 'running':
      return answered(
        vm,
        now,
        { ...known, opStatus: 'Running', cpuUtilization },
        { state: 'ready', reason: 'Running', message: 'The machine is running' },
      );
    case 'failed':
      return answered(
        vm,
        now,
        { ...known, opStatus: 'Failed' },
        {
          state: mayRecreate(vm) && isOwnedBy(vm, server) ? 'progressing' : 'stalled',
          reason: 'MachineFailed',
          message: `The machine has failed (${message ?? 'no cause given'}). ${remedyFor(vm, server)}`,
        },
      );
    case 'deleting':
      return answered(
        vm,
        now,
        { ...known, opStatus: 'Unknown' },
        {
          state: 'progressing',
          reason: 'MachineDeleting',
          message: message ?? 'The cloud is deleting the machine',
        },
      );
  }
}

/** Returns the status after a wrong vmId was replaced by the id of this server. */
export function repairedStatus(vm: VM, server: Server, now: number): VMStatus {
  const { repairs = 0 } = vm.status ?? {};
  return { ...machineStatus(vm, server, now), repairs: repairs + 1 };
}

/** Returns the status to store before a machine is created. It counts one more attempt. */
export function creatingStatus(vm: VM, now: number): VMStatus {
  const { opStatus = 'New', ...before } = withAttempt(without(vm.status));
  const status = withNameAccepted(vm, { ...before, opStatus }, now);
  // The result of the previous attempt stays in the status until this attempt ends.
  if (opStatus !== 'New') return status;
  const message = 'Creating the machine';
  return answered(vm, now, status, { state: 'progressing', reason: 'Creating', message });
}

/** Returns the status of a VM that was paused before it had a machine. */
export function pausedStatus(vm: VM, now: number): VMStatus {
  const message = 'No machine is created while the VM is paused';
  return answered(vm, now, without(vm.status), { state: 'progressing', reason: 'Paused', message });
}

/** Counts an attempt, so that the status differs from the stored one and is written before the request is sent. */
export function withAttempt(status: VMStatus): VMStatus {
  return { ...status, attempts: (status.attempts ?? 0) + 1 };
}

/** Returns the status of a VM with a name that is prohibited or in use. */
export function nameRejectedStatus(vm: VM, { reason, message }: NameRejection, now: number): VMStatus {
  const before = withCondition(
    vm,
    without(vm.status),
    { type: 'NameAccepted', status: 'False', reason, message },
    now,
  );
  const status = { ...before, opStatus: 'Failed' } as const;
  return answered(vm, now, status, { state: 'stalled', reason: `Name${reason}`, message });
}

/**
 * Returns the status of a VM with a machine that no longer exists in the cloud.
 * @param vmId id of that machine, if known
 */
export function lostStatus(vm: VM, vmId: string | undefined, message: string, now: number): VMStatus {
  const condition = { type: 'VmLost', status: 'True', reason: 'NotFound', message } as const;
  const before = withCondition(vm, without(vm.status), condition, now);
  const status = { ...before, ...(vmId !== undefined && { vmId }), opStatus: 'Unknown' } as const;
  const state = mayRecreate(vm) ? 'progressing' : 'stalled';
  return answered(vm, now, status, { state, reason: 'VmLost', message });
}

/**
 * Returns the status to store before a machine is replaced. It has no vmId. It increases `recreations`, so that the new
 * machine gets a new idempotency key.
 */
export function recreatingStatus(vm: VM, message: string, now: number): VMStatus {
  const { vmId: _, recreations = 0, ...before } = without(vm.status, 'VmLost');
  const counted = { recreations: recreations + 1, recreatedAt: new Date(now).toISOString() };
  const status = { ...before, ...counted, opStatus: 'Unknown' } as const;
  return answered(vm, now, status, { state: 'progressing', reason: 'Recreating', message });
}

/**
 * Returns the status after a cloud request failed or was rejected. Keeps the id of the machine, but not its CPU
 * utilization.
 */
export function errorStatus(vm: VM, error: ConditionError, now: number): VMStatus {
  const before = without(vm.status);
  const { reason, message, isOutage, isTransient } = error;
  const isDeleting = vm.metadata.deletionTimestamp !== undefined;
  // Only a VM without a machine becomes Failed: a rejected request says nothing about the state of an existing machine.
  const isRejected = !isOutage && !hasVmId(before);
  const opStatus = isDeleting ? 'Deleting' : isRejected ? 'Failed' : 'Unknown';
  const outcome: VmOutcome = {
    state: isTransient ? 'progressing' : 'stalled',
    reason,
    message: isDeleting ? `Waiting to delete the machine. ${message}` : message,
    isUnknown: !isRejected,
  };
  const status = withReady(vm, now, { ...before, opStatus }, outcome);
  return withCloudAvailable(vm, status, isOutage ? error : undefined, now);
}

/** Returns the status of a VM that is being deleted while its machine may exist. Leaves CloudAvailable as it is. */
export function deletingStatus(
  vm: VM,
  now: number,
  message: string,
  state: VmOutcome['state'] = 'progressing',
): VMStatus {
  const status = { ...without(vm.status), opStatus: 'Deleting' } as const;
  return withReady(vm, now, status, { state, reason: 'Deleting', message });
}

/**
 * Returns the status of a VM after its machine was deleted. The VM still exists because of finalizers of other
 * controllers.
 */
export function deletedStatus(vm: VM, now: number): VMStatus {
  const finalizers = vm.metadata.finalizers?.join(', ') ?? '';
  const message = `The machine is deleted. The VM waits for other controllers to remove their finalizers (metadata.finalizers: ${finalizers})`;
  const status = { ...without(vm.status), opStatus: 'Deleted' } as const;
  return answered(vm, now, status, { state: 'progressing', reason: 'Deleted', message });
}

/** Returns the status of a deleted VM with the policy Orphan, after its machine was orphaned. */
export function orphanedStatus(vm: VM, now: number): VMStatus {
  const message = 'The machine stays in the cloud and is no longer managed (deletion policy Orphan)';
  const status = { ...without(vm.status), opStatus: 'Unknown' } as const;
  return answered(vm, now, status, { state: 'progressing', reason: 'Orphaned', message });
}

/** Returns what the user can do, or what the operator does, about a lost or failed machine. */
export function remedyFor(vm: VM, server?: Server): string {
  if (!mayRecreate(vm)) return `Delete the VM, or annotate it with ${RECREATE}=true to get a new machine`;
  if (server !== undefined && !isOwnedBy(vm, server))
    return `The operator does not remove it, because its label ${UID_LABEL} is gone: delete it in the cloud to get a new machine`;
  const pauseMs = recreationPauseMs(vm);
  return pauseMs === 0
    ? 'The operator creates a new machine'
    : `The operator creates a new machine, at the earliest ${pauseMs / 1_000} s after the previous replacement`;
}

const RECREATION_BACKOFF = { baseMs: 10_000, maxMs: 5 * 60_000 };

/**
 * Returns the back-off before a replacement: none before the first replacement, then exponential, because new machines
 * may fail too.
 */
function recreationPauseMs({ status }: VM): number {
  return exponentialMs(status?.recreations ?? 0, RECREATION_BACKOFF);
}

/** Returns the remaining back-off before the next replacement in milliseconds; 0 if the clock was set back. */
export function recreationWaitMs(vm: VM, now: number): number {
  const passedMs = now - Date.parse(vm.status?.recreatedAt ?? '');
  return passedMs >= 0 ? Math.max(0, recreationPauseMs(vm) - passedMs) : 0;
}

const CLOUD_AVAILABLE = 'CloudAvailable';

/** Sets CloudAvailable. @param outage why the cloud does not serve requests; undefined if it does */
export function withCloudAvailable(
  vm: VM,
  status: VMStatus,
  outage: ConditionError | undefined,
  now: number,
): VMStatus {
  const condition =
    outage === undefined
      ? ({ status: 'True', reason: 'Answering', message: 'The cloud answers' } as const)
      : ({ status: 'False', reason: outage.reason, message: outage.message } as const);
  return withCondition(vm, status, { type: CLOUD_AVAILABLE, ...condition }, now);
}

/** Whether the status reports an outage of the cloud. */
export function isCloudUnavailable(status: VMStatus | undefined): boolean {
  return conditionOf(status?.conditions, CLOUD_AVAILABLE)?.status === 'False';
}

/** Whether the last cloud request for the VM failed or was rejected, so that the state of its machine is unknown. */
export function isReadyUnknown(status: VMStatus | undefined): boolean {
  return conditionOf(status?.conditions, 'Ready')?.status === 'Unknown';
}

/** Whether the status reports this error already. */
export function isReported(status: VMStatus | undefined, { reason, isOutage }: ConditionError): boolean {
  return conditionOf(status?.conditions, isOutage ? CLOUD_AVAILABLE : 'Ready')?.reason === reason;
}

function withNameAccepted(vm: VM, status: VMStatus, now: number): VMStatus {
  const message = 'The cloud accepts the name';
  return withCondition(
    vm,
    status,
    { type: 'NameAccepted', status: 'True', reason: 'Accepted', message },
    now,
  );
}

function withCondition(
  { metadata: { generation } }: VM,
  status: VMStatus,
  condition: Parameters<typeof setCondition>[1],
  now: number,
): VMStatus {
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  return { ...status, conditions: setCondition(status.conditions, { ...condition, ...observed }, now) };
}

/**
 * Returns the status without the given condition and without the CPU utilization. Only a new observation provides the
 * CPU utilization.
 */
function without(status: VMStatus | undefined, condition?: string): VMStatus {
  const { cpuUtilization: _, conditions, ...rest } = status ?? {};
  return { ...rest, ...(conditions && { conditions: conditions.filter(({ type }) => type !== condition) }) };
}

/** Sets Ready to the outcome, and CloudAvailable to True, because there is no outage. */
function answered(vm: VM, now: number, status: VMStatus, outcome: VmOutcome): VMStatus {
  return withCloudAvailable(vm, withReady(vm, now, status, outcome), undefined, now);
}

function withReady(vm: VM, now: number, status: VMStatus, outcome: VmOutcome): VMStatus {
  const paused = withPaused(vm, { ...status, msg: outcome.message }, pauseOf(vm), now);
  return withOutcome(vm, paused, outcome, now);
}
