import type { Server } from '@vmwright/cloud';
import { conditionOf, type Outcome, setCondition, withOutcome, withPaused } from '@vmwright/runtime';
import { mayRecreate, pauseOf, RECREATE } from '../annotations.ts';
import { type ConditionError, isOutageReason } from './errors.ts';
import { isOwnedBy, UID_LABEL } from './identity.ts';
import { hasVmId, type VM, type VMStatus } from './resource.ts';

/* The status of a VM in each situation. The text is the same on every retry, so that nothing is written again. */

/** Why the cloud rejects a name. */
export interface Refusal {
  readonly reason: 'Prohibited' | 'Taken';
  readonly message: string;
}

/** Its server exists. */
export function observed(vm: VM, server: Server, now: number): VMStatus {
  const { id, state, cpuUtilization, message } = server;
  const known = { ...accepted(vm, without(vm.status, 'VmLost'), now), vmId: id };
  switch (state) {
    case 'building':
      return reported(
        vm,
        now,
        { ...known, opStatus: 'New' },
        { state: 'progressing', reason: 'Building', message: 'The cloud is creating the machine' },
      );
    case 'running':
      return reported(
        vm,
        now,
        { ...known, opStatus: 'Running', cpuUtilization },
        { state: 'ready', reason: 'Running', message: 'The machine is running' },
      );
    case 'failed':
      return reported(
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
      return reported(
        vm,
        now,
        { ...known, opStatus: 'Unknown' },
        {
          state: 'progressing',
          reason: 'MachineDeleting',
          message: message ?? 'The machine is being deleted in the cloud, not by this operator',
        },
      );
  }
}

/** Its vmId named a server that is not its own; `server` is. */
export function repaired(vm: VM, server: Server, now: number): VMStatus {
  const { repairs = 0 } = vm.status ?? {};
  return { ...observed(vm, server, now), repairs: repairs + 1 };
}

/** Being deleted, and the machine still exists or may. */
export function deleting(vm: VM, now: number, message: string, state: Outcome['state'] = 'progressing') {
  const status = { ...without(vm.status), opStatus: 'Deleting' } as const;
  return reported(vm, now, status, { state, reason: 'Deleting', message });
}

/** Being deleted, and the machine is gone: only finalizers of others keep the object. */
export function deleted(vm: VM, now: number): VMStatus {
  const others = vm.metadata.finalizers?.join(', ') ?? '';
  const message = `The machine is deleted. The object waits for other finalizers among ${others}`;
  const status = { ...without(vm.status), opStatus: 'Deleted' } as const;
  return reported(vm, now, status, { state: 'progressing', reason: 'Deleted', message });
}

/** Being deleted with the policy Orphan, and the machine is no longer ours. */
export function orphaned(vm: VM, now: number): VMStatus {
  const message = 'The machine stays in the cloud and is no longer managed (deletion policy Orphan)';
  const status = { ...without(vm.status), opStatus: 'Unknown' } as const;
  return reported(vm, now, status, { state: 'progressing', reason: 'Orphaned', message });
}

/** The cloud could not be asked, or has rejected the request; what was known before stays. */
export function troubled(vm: VM, trouble: ConditionError, now: number): VMStatus {
  const before = without(vm.status);
  const { reason, message } = trouble;
  const isDeleting = vm.metadata.deletionTimestamp !== undefined;
  // A rejected request says nothing about a machine that exists.
  const isRefused = reason === 'CloudRefused' && !hasVmId(before);
  const opStatus = isDeleting ? 'Deleting' : isRefused ? 'Failed' : 'Unknown';
  return reported(
    vm,
    now,
    { ...before, opStatus },
    {
      state: trouble.isTransient ? 'progressing' : 'stalled',
      reason,
      message: isDeleting ? `Waiting to delete the machine. ${message}` : message,
      isUnknown: !isRefused,
    },
  );
}

/** A machine is about to be created. */
export function pending(vm: VM, now: number): VMStatus {
  const { opStatus = 'New', ...before } = counted(without(vm.status));
  const status = accepted(vm, { ...before, opStatus }, now);
  if (opStatus !== 'New') return status;
  const message = 'Creating the machine';
  return reported(vm, now, status, { state: 'progressing', reason: 'Creating', message });
}

/** Paused before it has a machine. */
export function idle(vm: VM, now: number): VMStatus {
  const message = 'No machine is created while the VM is paused';
  const status = without(vm.status);
  return reported(vm, now, status, { state: 'progressing', reason: 'Paused', message });
}

/** Counts an attempt: only a status that differs is written, and only a write is compared with what is stored. */
export function counted(status: VMStatus): VMStatus {
  return { ...status, attempts: (status.attempts ?? 0) + 1 };
}

/** Its name is prohibited, or in use. */
export function refused(vm: VM, { reason, message }: Refusal, now: number): VMStatus {
  const before = without(vm.status);
  const conditions = setCondition(
    before.conditions,
    { type: 'NameAccepted', status: 'False', reason, message, ...generationOf(vm) },
    now,
  );
  const status = { ...before, opStatus: 'Failed', conditions } as const;
  return reported(vm, now, status, { state: 'stalled', reason: `Name${reason}`, message });
}

/** @param vmId what it had, where that is known */
export function lost(vm: VM, vmId: string | undefined, message: string, now: number): VMStatus {
  const before = without(vm.status);
  const condition = { type: 'VmLost', status: 'True', reason: 'NotFound', message } as const;
  const conditions = setCondition(before.conditions, { ...condition, ...generationOf(vm) }, now);
  const known = { ...before, ...(vmId !== undefined && { vmId }), opStatus: 'Unknown', conditions } as const;
  const state = mayRecreate(vm) ? 'progressing' : 'stalled';
  return reported(vm, now, known, { state, reason: 'VmLost', message });
}

/** Its machine is given up for a new one, which has a new id and a new key: the old key stands for the lost one. */
export function recreated(vm: VM, message: string, now: number): VMStatus {
  const { vmId: _, recreations = 0, ...before } = without(vm.status, 'VmLost');
  const again = { recreations: recreations + 1, recreatedAt: new Date(now).toISOString() };
  const known = { ...before, ...again, opStatus: 'Unknown' } as const;
  return reported(vm, now, known, { state: 'progressing', reason: 'Recreating', message });
}

/** What the user can do, or what the operator does, about a machine that is lost or has failed. */
export function remedyFor(vm: VM, server?: Server): string {
  if (!mayRecreate(vm)) return `Delete the VM, or annotate it with ${RECREATE}=true to get a new machine`;
  if (server !== undefined && !isOwnedBy(vm, server))
    return `The operator does not remove it, because its label ${UID_LABEL} is gone: delete it in the cloud to get a new machine`;
  const pauseMs = recreationPauseOf(vm);
  return pauseMs === 0
    ? 'A new machine is created'
    : `A new machine is created, at least ${pauseMs / 1_000} s after the last one`;
}

/** Pause between two machines of an object that are lost, or fail, one after the other. */
const SHORTEST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/** The first lost or failed machine is replaced at once, the next ones after a growing pause: each one may fail. */
function recreationPauseOf({ status }: VM): number {
  const { recreations = 0 } = status ?? {};
  return recreations === 0 ? 0 : Math.min(SHORTEST_PAUSE_MS * 2 ** (recreations - 1), LONGEST_PAUSE_MS);
}

/** What is left of that pause, which began when this machine was decided on. A clock that was set back ends it. */
export function recreationWaitOf(vm: VM, now: number): number {
  const passedMs = now - Date.parse(vm.status?.recreatedAt ?? '');
  return passedMs >= 0 ? Math.max(0, recreationPauseOf(vm) - passedMs) : 0;
}

/** The reason of Ready while the cloud could not be asked, or has rejected a request; undefined otherwise. */
export function cloudTroubleOf(status: VMStatus | undefined): string | undefined {
  const reason = conditionOf(status?.conditions, 'Ready')?.reason;
  return reason === 'CloudRefused' || isOutageReason(reason) ? reason : undefined;
}

function accepted(vm: VM, status: VMStatus, now: number): VMStatus {
  const message = 'The cloud accepts the name';
  const condition = { type: 'NameAccepted', status: 'True', reason: 'Accepted', message } as const;
  return {
    ...status,
    conditions: setCondition(status.conditions, { ...condition, ...generationOf(vm) }, now),
  };
}

/** What stays of a status until the next observation: the utilization does not, nor does that condition. */
function without(status: VMStatus | undefined, condition?: string): VMStatus {
  const { cpuUtilization: _, conditions, ...rest } = status ?? {};
  return { ...rest, ...(conditions && { conditions: conditions.filter(({ type }) => type !== condition) }) };
}

function reported(vm: VM, now: number, status: VMStatus, outcome: Outcome): VMStatus {
  const paused = withPaused(vm, { ...status, msg: outcome.message }, pauseOf(vm), now);
  return withOutcome(vm, paused, outcome, now);
}

function generationOf({ metadata: { generation } }: VM): { readonly observedGeneration?: number } {
  return generation === undefined ? {} : { observedGeneration: generation };
}
