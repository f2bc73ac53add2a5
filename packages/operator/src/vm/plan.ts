import type { Labels, NewServer, Server } from '@vmwright/cloud';
import { type EventInput, isTrue } from '@vmwright/runtime';
import { isPaused, mayRecreate } from '../annotations.ts';
import { idempotencyKey, isOwnedBy, labelsToRepair, ownershipLabels, ownerUid } from './identity.ts';
import type { Gone, NameRejection, Observed } from './observe.ts';
import { hasVmId, type VM, type VMStatus } from './resource.ts';
import {
  creatingStatus,
  isCloudUnavailable,
  isReadyUnknown,
  lostStatus,
  machineStatus,
  nameRejectedStatus,
  pausedStatus,
  recreatingStatus,
  recreationWaitMs,
  remedyFor,
  repairedStatus,
  withAttempt,
} from './status.ts';

/** Next step of a reconcile of a VM. */
export interface Plan {
  /** Status to store before the actions are executed. It records the intent of a create or a delete. */
  readonly status: VMStatus;
  /**
   * Actions to execute once the status is stored. The next plan is based on their results. If there are no actions, the
   * reconcile ends.
   */
  readonly actions: readonly Action[];
  /** Event to record when the reconcile ends. */
  readonly event?: EventInput;
  /** Time in milliseconds after which the VM is reconciled again even if nothing has changed. */
  readonly requeueAfterMs?: number;
}

export type Action =
  | { readonly type: 'get'; readonly id: string }
  /** Searches for a server with the VM's UID label, other than the server `except`. */
  | { readonly type: 'findOwned'; readonly except: string }
  | { readonly type: 'checkName'; readonly name: string }
  | { readonly type: 'relabel'; readonly id: string; readonly labels: Labels }
  | { readonly type: 'create'; readonly server: NewServer; readonly key: string }
  | { readonly type: 'delete'; readonly id: string };

/** Interval at which a rejected name is checked again. The cloud does not report when a name becomes free. */
const NAME_RECHECK_MS = 5 * 60_000;

/**
 * Plans the next step for a VM that is not being deleted. A paused VM is only observed.
 *
 * A plan with a create or a delete increments `attempts`, so its status always differs from the stored one. The status
 * is written before the request is sent. The write carries the resourceVersion, so it fails if the object has changed
 * since the plan was made.
 *
 * A lost or failed machine is replaced only if the user asks for it. The new machine lacks the id, the address and
 * perhaps the data of the old one.
 */
export function plan(vm: VM, observed: Observed, now: number): Plan {
  const { spec, status = {} } = vm;
  const { server, name, owned } = observed;
  const labels = ownershipLabels(observed.cluster, vm);
  if (server === undefined) {
    if (hasVmId(status)) return planAction(vm, { type: 'get', id: status.vmId });
    if (isPaused(vm)) return end(pausedStatus(vm, now));
    if (name === undefined) return planAction(vm, { type: 'checkName', name: spec.vmname });
    if (name !== 'accepted') return planNameRejected(vm, name, now);
    const create = { server: { name: spec.vmname, labels }, key: idempotencyKey(vm) };
    return { status: creatingStatus(vm, now), actions: [{ type: 'create', ...create }] };
  }
  const isOurs = !('gone' in server) && isOwnedBy(vm, server);
  if (!isOurs && hasVmId(status)) {
    if (owned === undefined) return planAction(vm, { type: 'findOwned', except: status.vmId });
    if (owned !== 'none') return planRepair(vm, owned, now);
  }
  if ('gone' in server || isOfAnother(vm, server)) return planWithoutMachine(vm, server, now);
  const current = machineStatus(vm, server, now);
  if (isPaused(vm)) return end(current);
  const repair = labelsToRepair(server, labels);
  // Relabels at most once per reconcile. Otherwise, if the cloud ignored the labels, this would be an endless loop.
  if (repair !== undefined && !observed.isRelabelled)
    return planAction(vm, { type: 'relabel', id: server.id, labels: repair });
  const waitMs = recreationWaitMs(vm, now);
  const isReplaced = server.state === 'failed' && mayRecreate(vm) && isOwnedBy(vm, server);
  if (!isReplaced || observed.isDeleted) return end(current);
  if (waitMs > 0) return { ...end(current), requeueAfterMs: waitMs };
  // An error of an earlier attempt stays in the status until the delete has succeeded.
  const before = isReadyUnknown(status) ? { ...status, vmId: server.id } : current;
  return { status: withAttempt(before), actions: [{ type: 'delete', id: server.id }] };
}

/** Whether a VM needs a reconcile, because its status differs from a list of servers. The list may be outdated. */
export function isOutdated(vm: VM, servers: ReadonlyMap<string, Server>): boolean {
  const { metadata, status = {} } = vm;
  const isUnavailable = isCloudUnavailable(status);
  // The work queue already retries a VM that has no machine or is being deleted. Such a VM is enqueued here only to
  // report the end of an outage.
  if (metadata.deletionTimestamp !== undefined || !hasVmId(status)) return isUnavailable;
  // The cloud rejected a request for this VM. The work queue retries it with exponential back-off, so it is not
  // enqueued here.
  if (isReadyUnknown(status) && !isUnavailable) return false;
  const server = servers.get(status.vmId);
  if (server === undefined || isOfAnother(vm, server))
    return isUnavailable || replacesLost(vm) || !isTrue(status.conditions, 'VmLost');
  const { opStatus, cpuUtilization, msg } = machineStatus(vm, server, 0);
  return opStatus !== status.opStatus || cpuUtilization !== status.cpuUtilization || msg !== status.msg;
}

/** Whether the operator replaces the VM's machine if it is lost. */
function replacesLost(vm: VM): boolean {
  return mayRecreate(vm) && !isPaused(vm);
}

/**
 * Whether a server was not created for this VM. A server without a UID label counts as the VM's own if it has the VM's
 * name. The status then reports that server, but the operator does not change it.
 */
function isOfAnother(vm: VM, server: Server): boolean {
  const isUnlabelled = ownerUid(server) === undefined && server.name === vm.spec.vmname;
  return !isOwnedBy(vm, server) && !isUnlabelled;
}

/** Returns a plan with one action and an unchanged status. */
function planAction({ status = {} }: VM, action: Action): Plan {
  return { status, actions: [action] };
}

function end(status: VMStatus): Plan {
  return { status, actions: [] };
}

/** @param server either `Gone`, or the server that `status.vmId` names if it belongs to another owner */
function planWithoutMachine(vm: VM, server: Server | Gone, now: number): Plan {
  const { status = {} } = vm;
  const vmId = hasVmId(status) ? status.vmId : 'gone' in server ? server.gone : server.id;
  const machine = vmId === undefined ? 'of this VM' : vmId;
  const waitMs = recreationWaitMs(vm, now);
  if (replacesLost(vm) && waitMs === 0) {
    const note = `Machine ${machine} is gone; creating a new one`;
    const event = { type: 'Normal', reason: 'Recreating', note } as const;
    return { ...endWithEvent(vm, recreatingStatus(vm, note, now), event), requeueAfterMs: 0 };
  }
  const problem =
    'gone' in server
      ? `The cloud has no machine ${machine} any more`
      : `Machine ${machine} does not belong to this VM, and the cloud has no machine of this VM`;
  const note = `${problem}. ${remedyFor(vm)}`;
  const event = { type: 'Warning', reason: 'VmLost', note } as const;
  const lost = endWithEvent(vm, lostStatus(vm, vmId, note, now), event);
  return replacesLost(vm) ? { ...lost, requeueAfterMs: waitMs } : lost;
}

function planRepair(vm: VM, server: Server, now: number): Plan {
  const note = `status.vmId named ${vm.status?.vmId}, which is not the machine of this VM; corrected to ${server.id}`;
  const event = { type: 'Warning', reason: 'VmIdRepaired', note } as const;
  return { ...end(repairedStatus(vm, server, now)), event, requeueAfterMs: 0 };
}

function planNameRejected(vm: VM, rejection: NameRejection, now: number): Plan {
  const event = { type: 'Warning', reason: `Name${rejection.reason}`, note: rejection.message } as const;
  return {
    ...endWithEvent(vm, nameRejectedStatus(vm, rejection, now), event),
    requeueAfterMs: NAME_RECHECK_MS,
  };
}

/** Returns a plan that ends the reconcile. Includes the event only if the message of the status changes. */
function endWithEvent(vm: VM, status: VMStatus, event: EventInput): Plan {
  return status.msg === vm.status?.msg ? end(status) : { ...end(status), event };
}
