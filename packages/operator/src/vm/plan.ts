import type { Labels, NewServer, Server } from '@vmwright/cloud';
import { type Condition, conditionOf, type Happening, isTrue, setCondition } from '@vmwright/runtime';
import { isPaused, mayRecreate, RECREATE } from '../annotations.ts';
import { isOwnedBy, keyFor, marksOf, marksToMend, OWNER } from './marks.ts';
import type { VM, VMStatus } from './resource.ts';
import type { Trouble } from './trouble.ts';

/** What a reconcile has found out and done so far. */
export interface Seen {
  /** The object's server, or that the cloud says there is none (any more). */
  readonly server?: Server | Gone;
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

/** Why the cloud will not have a server of this name. */
export interface Refusal {
  readonly reason: 'Prohibited' | 'Taken';
  readonly message: string;
}

/** What to do next. */
export type Step =
  | { readonly do: 'look'; readonly id: string }
  | { readonly do: 'mark'; readonly id: string; readonly labels: Labels }
  | { readonly do: 'check'; readonly name: string }
  | { readonly do: 'intend'; readonly status: VMStatus }
  | { readonly do: 'create'; readonly server: NewServer; readonly key: string }
  | { readonly do: 'remove'; readonly id: string }
  /** Write this, and rest; or come again although nothing happens. */
  | { readonly do: 'tell'; readonly status: VMStatus; readonly event?: Happening; readonly againMs?: number }
  | { readonly do: 'nothing' };

/** A name that is prohibited, or another's, may become free: nobody tells us. */
const NAME_AGAIN_MS = 5 * 60_000;

/** Between two machines of an object that are lost, or fail, one after the other. */
const SHORTEST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/**
 * The next step for an object that is wanted. What is lost is not made anew unasked: it had an id, an address and
 * perhaps data, which a new one does not have.
 * @param cluster marks what is ours
 */
export function plan(cluster: string, now: number, vm: VM, seen: Seen): Step {
  if (isPaused(vm)) return { do: 'nothing' };
  const { spec, status = {} } = vm;
  const { server, name } = seen;
  const labels = marksOf(cluster, vm);
  if (server === undefined) {
    if (status.vmId !== undefined) return { do: 'look', id: status.vmId };
    if (name === undefined) return { do: 'check', name: spec.vmname };
    if (name !== 'accepted') return refused(vm, name, now);
    if (!seen.intended) return { do: 'intend', status: pending(vm, now) };
    return { do: 'create', server: { name: spec.vmname, labels }, key: keyFor(vm) };
  }
  const waitMs = waitOf(vm, now);
  if ('gone' in server)
    return mayRecreate(vm) && waitMs === 0 ? recreated(vm, server, now) : lost(vm, server, now);
  const marks = marksToMend(server, labels);
  if (marks !== undefined) return { do: 'mark', id: server.id, labels: marks };
  const observation = observed(vm, server, now);
  const isToGo = server.state === 'failed' && mayRecreate(vm) && isOwnedBy(vm, server);
  if (!isToGo || seen.removed) return { do: 'tell', status: observation };
  if (waitMs > 0) return { do: 'tell', status: observation, againMs: waitMs };
  if (seen.intended) return { do: 'remove', id: server.id };
  // What stood in the way of it stays told until it does not.
  return { do: 'intend', status: counted(isCloudTrouble(vm) ? { ...status, vmId: server.id } : observation) };
}

/** Whether an object's status is not what a list of the cloud's servers shows; a list that is old is good enough for that. */
export function isOutdated(vm: VM, servers: ReadonlyMap<string, Server>): boolean {
  const { metadata, status = {} } = vm;
  if (isPaused(vm) || metadata.deletionTimestamp !== undefined) return false;
  if (reasonOf(vm) === 'CloudRefused') return false; // it is tried again by itself, ever later
  if (status.vmId === undefined) return isCloudTrouble(vm); // else it is on its way by itself
  const server = servers.get(status.vmId);
  if (server === undefined)
    return isCloudTrouble(vm) || mayRecreate(vm) || !isTrue(status.conditions, 'VmLost');
  const { opStatus, cpuUtilization, msg } = observed(vm, server, 0);
  return opStatus !== status.opStatus || cpuUtilization !== status.cpuUtilization || msg !== status.msg;
}

/** Whether what is told of it is that the cloud does not answer, or refuses. */
export function isCloudTrouble(vm: VM): boolean {
  return reasonOf(vm)?.startsWith('Cloud') ?? false;
}

function reasonOf({ status }: VM): string | undefined {
  return conditionOf(status?.conditions, 'Ready')?.reason;
}

/** The status of an object whose server is there. */
export function observed(vm: VM, server: Server, now: number): VMStatus {
  const { id, state, cpuUtilization, message } = server;
  const known = { ...accepted(vm, without(vm.status, 'VmLost'), now), vmId: id };
  switch (state) {
    case 'building':
      return told(
        vm,
        now,
        { ...known, opStatus: 'New' },
        {
          status: 'False',
          reason: 'Building',
          message: 'the cloud is making the machine',
        },
      );
    case 'running':
      return told(
        vm,
        now,
        { ...known, opStatus: 'Running', cpuUtilization },
        {
          status: 'True',
          reason: 'Running',
          message: 'the machine runs',
        },
      );
    case 'failed':
      return told(
        vm,
        now,
        { ...known, opStatus: 'Failed' },
        {
          status: 'False',
          reason: 'MachineFailed',
          message: `the machine has failed (${message ?? 'it does not say why'}); ${remedyFor(vm, server)}`,
        },
      );
    case 'deleting':
      return told(
        vm,
        now,
        { ...known, opStatus: 'Unknown' },
        {
          status: 'False',
          reason: 'MachineDeleting',
          message: message ?? 'the machine is being deleted in the cloud',
        },
      );
  }
}

/** The status of an object that is being deleted and whose server is still there. */
export function leaving(vm: VM, now: number, message: string): VMStatus {
  return told(vm, now, without(vm.status), { status: 'False', reason: 'Deleting', message });
}

/** The status of an object when the cloud could not be asked, or has refused: what was known of it stays. */
export function troubled(vm: VM, { reason, message }: Trouble, now: number): VMStatus {
  const before = without(vm.status);
  // Of a machine that is there, a refusal says nothing.
  const isRefused = reason === 'CloudRefused' && before.vmId === undefined;
  const opStatus = isRefused ? 'Failed' : 'Unknown';
  return told(vm, now, { ...before, opStatus }, { status: isRefused ? 'False' : 'Unknown', reason, message });
}

function pending(vm: VM, now: number): VMStatus {
  const { opStatus = 'New', ...before } = counted(without(vm.status));
  const status = accepted(vm, { ...before, opStatus }, now);
  if (opStatus !== 'New') return status;
  const message = 'the cloud is asked for a machine';
  return told(vm, now, status, { status: 'False', reason: 'Creating', message });
}

/** Since only a status that differs is written, and only a write is compared with what is stored. */
function counted(status: VMStatus): VMStatus {
  return { ...status, attempts: (status.attempts ?? 0) + 1 };
}

function refused(vm: VM, { reason, message }: Refusal, now: number): Step {
  const before = without(vm.status);
  const conditions = setCondition(
    before.conditions,
    { type: 'NameAccepted', status: 'False', reason, message, ...generationOf(vm) },
    now,
  );
  const ready = { status: 'False', reason: `Name${reason}`, message } as const;
  return {
    do: 'tell',
    status: told(vm, now, { ...before, opStatus: 'Failed', conditions }, ready),
    event: { type: 'Warning', reason: `Name${reason}`, note: message },
    againMs: NAME_AGAIN_MS,
  };
}

function accepted(vm: VM, status: VMStatus, now: number): VMStatus {
  const message = 'the cloud accepts the name';
  const condition = { type: 'NameAccepted', status: 'True', reason: 'Accepted', message } as const;
  return {
    ...status,
    conditions: setCondition(status.conditions, { ...condition, ...generationOf(vm) }, now),
  };
}

function lost(vm: VM, { gone }: Gone, now: number): Step {
  const before = without(vm.status);
  const vmId = before.vmId ?? gone;
  const message = `the cloud has no machine ${vmId ?? 'of this VM'} any more; ${remedyFor(vm)}`;
  const condition = { type: 'VmLost', status: 'True', reason: 'NotFound', message } as const;
  const conditions = setCondition(before.conditions, { ...condition, ...generationOf(vm) }, now);
  const known = { ...before, ...(vmId !== undefined && { vmId }), opStatus: 'Unknown', conditions } as const;
  return {
    do: 'tell',
    status: told(vm, now, known, { status: 'False', reason: 'VmLost', message }),
    event: { type: 'Warning', reason: 'VmLost', note: message },
    ...(mayRecreate(vm) && { againMs: waitOf(vm, now) }),
  };
}

/** @param server what is there of it */
function remedyFor(vm: VM, server?: Server): string {
  if (!mayRecreate(vm)) return `delete the VM, or annotate it with ${RECREATE}=true to have another`;
  if (server !== undefined && !isOwnedBy(vm, server))
    return `its label ${OWNER} is gone, so it is not ours to remove: delete it in the cloud to have another`;
  const pauseMs = pauseOf(vm);
  return pauseMs === 0 ? 'another is made' : `another is made, ${pauseMs / 1_000} s after it at the earliest`;
}

/** A new machine has a new id, and a new key: the old one stands for what is gone. It is asked for in the next reconcile. */
function recreated(vm: VM, { gone }: Gone, now: number): Step {
  const { vmId = gone, recreations = 0, ...before } = without(vm.status, 'VmLost');
  const message = `machine ${vmId ?? 'of this VM'} is gone; a new one is made`;
  const again = { recreations: recreations + 1, recreatedAt: new Date(now).toISOString() };
  const known = { ...before, ...again, opStatus: 'Unknown' } as const;
  return {
    do: 'tell',
    status: told(vm, now, known, { status: 'False', reason: 'Recreating', message }),
    event: { type: 'Normal', reason: 'Recreating', note: message },
    againMs: 0,
  };
}

/** The first machine that is lost, or fails, is made anew at once; the next ones ever later: it may be so each time. */
function pauseOf({ status }: VM): number {
  const { recreations = 0 } = status ?? {};
  return recreations === 0 ? 0 : Math.min(SHORTEST_PAUSE_MS * 2 ** (recreations - 1), LONGEST_PAUSE_MS);
}

/** What is left of that pause, which began when this machine was decided on. A clock that was set back ends it. */
function waitOf(vm: VM, now: number): number {
  const passedMs = now - Date.parse(vm.status?.recreatedAt ?? '');
  return passedMs >= 0 ? Math.max(0, pauseOf(vm) - passedMs) : 0;
}

/** What stays of a status until something is observed anew: the utilization does not, nor does that condition. */
function without(status: VMStatus | undefined, condition?: string): VMStatus {
  const { cpuUtilization: _, conditions, ...rest } = status ?? {};
  return { ...rest, ...(conditions && { conditions: conditions.filter(({ type }) => type !== condition) }) };
}

function told(
  vm: VM,
  now: number,
  status: VMStatus,
  ready: Pick<Condition, 'status' | 'reason' | 'message'>,
): VMStatus {
  const condition = { type: 'Ready', ...ready, ...generationOf(vm) };
  return { ...status, msg: ready.message, conditions: setCondition(status.conditions, condition, now) };
}

function generationOf({ metadata: { generation } }: VM): { readonly observedGeneration?: number } {
  return generation === undefined ? {} : { observedGeneration: generation };
}
