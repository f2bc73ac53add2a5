import type { Labels, NewServer, Server } from '@vmwright/cloud';
import { type EventInput, isTrue } from '@vmwright/runtime';
import { isPaused, mayRecreate } from '../annotations.ts';
import { idempotencyKey, isOwnedBy, labelsToRepair, ownershipLabels, ownerUid } from './identity.ts';
import { hasVmId, type VM, type VMStatus } from './resource.ts';
import {
  cloudTroubleOf,
  counted,
  idle,
  lost,
  observed,
  pending,
  type Refusal,
  recreated,
  recreationWaitOf,
  refused,
  remedyFor,
  repaired,
} from './status.ts';

/** What a reconcile has observed and done so far. */
export interface Seen {
  /** The server that `status.vmId` names, or that the cloud has none (any more). */
  readonly server?: Server | Gone;
  /** Another server with this object's ownership label, where `status.vmId` does not name one of its own. */
  readonly owned?: Server | 'none';
  /** What the cloud says about the name. */
  readonly name?: 'accepted' | Refusal;
  /** The intent to create it, or to remove it, is stored, over the very version of the object that this plan is about. */
  readonly intended?: boolean;
  /** The server was asked to go. */
  readonly removed?: boolean;
}

export interface Gone {
  /** The id that it had, where that is known. */
  readonly gone: string | undefined;
}

/** What to do next. */
export type Step =
  | { readonly do: 'look'; readonly id: string }
  /** Look for a server with this object's ownership label, other than this one. */
  | { readonly do: 'search'; readonly besides: string }
  | { readonly do: 'mark'; readonly id: string; readonly labels: Labels }
  | { readonly do: 'check'; readonly name: string }
  | { readonly do: 'intend'; readonly status: VMStatus }
  | { readonly do: 'create'; readonly server: NewServer; readonly key: string }
  | { readonly do: 'remove'; readonly id: string }
  /** Write this, and rest; or come again although nothing happens. */
  | {
      readonly do: 'tell';
      readonly status: VMStatus;
      readonly event?: EventInput;
      readonly againMs?: number;
    };

/** The cloud does not notify: a prohibited or used name is checked again after this time. */
const NAME_AGAIN_MS = 5 * 60_000;

/**
 * The next step for an object that is wanted. A lost machine is not replaced unless the user asks for it: it had an id,
 * an address and perhaps data, which a new one does not have. A paused object is observed, and nothing is changed for it.
 * @param cluster marks what is ours
 */
export function plan(cluster: string, now: number, vm: VM, seen: Seen): Step {
  const { spec, status = {} } = vm;
  const { server, name } = seen;
  const labels = ownershipLabels(cluster, vm);
  if (server === undefined) {
    if (hasVmId(status)) return { do: 'look', id: status.vmId };
    if (isPaused(vm)) return { do: 'tell', status: idle(vm, now) };
    if (name === undefined) return { do: 'check', name: spec.vmname };
    if (name !== 'accepted') return tellRefused(vm, name, now);
    if (!seen.intended) return { do: 'intend', status: pending(vm, now) };
    return { do: 'create', server: { name: spec.vmname, labels }, key: idempotencyKey(vm) };
  }
  const isOurs = !('gone' in server) && isOwnedBy(vm, server);
  if (!isOurs && hasVmId(status)) {
    if (seen.owned === undefined) return { do: 'search', besides: status.vmId };
    if (seen.owned !== 'none') return tellRepaired(vm, seen.owned, now);
  }
  if ('gone' in server || isOfAnother(vm, server)) return planWithoutMachine(vm, server, now);
  const observation = observed(vm, server, now);
  if (isPaused(vm)) return { do: 'tell', status: observation };
  const marks = labelsToRepair(server, labels);
  if (marks !== undefined) return { do: 'mark', id: server.id, labels: marks };
  const waitMs = recreationWaitOf(vm, now);
  const isToGo = server.state === 'failed' && mayRecreate(vm) && isOwnedBy(vm, server);
  if (!isToGo || seen.removed) return { do: 'tell', status: observation };
  if (waitMs > 0) return { do: 'tell', status: observation, againMs: waitMs };
  if (seen.intended) return { do: 'remove', id: server.id };
  // Trouble with the cloud stays in the status until the removal has succeeded.
  const isTroubled = cloudTroubleOf(status) !== undefined;
  return { do: 'intend', status: counted(isTroubled ? { ...status, vmId: server.id } : observation) };
}

/** Whether an object's status is not what a list of the cloud's servers shows; a list that is old is good enough for that. */
export function isOutdated(vm: VM, servers: ReadonlyMap<string, Server>): boolean {
  const { metadata, status = {} } = vm;
  const trouble = cloudTroubleOf(status);
  if (trouble === 'CloudRefused') return false; // it is retried by itself, after a growing pause
  if (metadata.deletionTimestamp !== undefined) return trouble !== undefined;
  if (!hasVmId(status)) return trouble !== undefined; // else it is on its way by itself
  const server = servers.get(status.vmId);
  if (server === undefined || isOfAnother(vm, server))
    return trouble !== undefined || isReplaced(vm) || !isTrue(status.conditions, 'VmLost');
  const { opStatus, cpuUtilization, msg } = observed(vm, server, 0);
  return opStatus !== status.opStatus || cpuUtilization !== status.cpuUtilization || msg !== status.msg;
}

/** Whether a machine that is lost is replaced. */
function isReplaced(vm: VM): boolean {
  return mayRecreate(vm) && !isPaused(vm);
}

/**
 * Whether a server was not created for this object. One of its name whose ownership label was removed is taken for its
 * own: it is observed, and nothing is changed.
 */
function isOfAnother(vm: VM, server: Server): boolean {
  const isUnlabelled = ownerUid(server) === undefined && server.name === vm.spec.vmname;
  return !isOwnedBy(vm, server) && !isUnlabelled;
}

/** @param server that it is gone, or the server of somebody else that `status.vmId` names */
function planWithoutMachine(vm: VM, server: Server | Gone, now: number): Step {
  const { status = {} } = vm;
  const vmId = hasVmId(status) ? status.vmId : 'gone' in server ? server.gone : server.id;
  const what = vmId === undefined ? 'of this VM' : vmId;
  const waitMs = recreationWaitOf(vm, now);
  if (isReplaced(vm) && waitMs === 0) {
    const message = `Machine ${what} is gone; creating a new one`;
    return {
      do: 'tell',
      status: recreated(vm, message, now),
      event: { type: 'Normal', reason: 'Recreating', note: message },
      againMs: 0,
    };
  }
  const problem =
    'gone' in server
      ? `The cloud has no machine ${what} any more`
      : `Machine ${what} is not a machine of this VM, and the cloud has none of it`;
  const message = `${problem}. ${remedyFor(vm)}`;
  return {
    do: 'tell',
    status: lost(vm, vmId, message, now),
    event: { type: 'Warning', reason: 'VmLost', note: message },
    ...(isReplaced(vm) && { againMs: waitMs }),
  };
}

function tellRepaired(vm: VM, server: Server, now: number): Step {
  const note = `status.vmId named ${vm.status?.vmId}, which is not the machine of this VM; corrected to ${server.id}`;
  const event = { type: 'Warning', reason: 'VmIdRepaired', note } as const;
  return { do: 'tell', status: repaired(vm, server, now), event, againMs: 0 };
}

function tellRefused(vm: VM, refusal: Refusal, now: number): Step {
  return {
    do: 'tell',
    status: refused(vm, refusal, now),
    event: { type: 'Warning', reason: `Name${refusal.reason}`, note: refusal.message },
    againMs: NAME_AGAIN_MS,
  };
}
