import type { NewServer, Server } from '@vmwright/cloud';
import { type Condition, conditionOf, type Happening, isTrue, setCondition } from '@vmwright/runtime';
import { isPaused, RECREATE } from '../annotations.ts';
import { keyFor, marksOf, namespaceOf, ownerOf } from './marks.ts';
import type { VM, VMStatus } from './resource.ts';

/** What a reconcile has found out and done so far. */
export interface Seen {
  /** The object's server, or the id under which the cloud says that there is none (any more). */
  readonly server?: Server | Gone;
  /** What the cloud says about the name. */
  readonly name?: 'accepted' | Refusal;
  /** The intent to create is stored, over the very version of the object that this plan is about. */
  readonly intended?: boolean;
}

export interface Gone {
  readonly gone: string;
}

/** Why the cloud will not have a server of this name. */
export interface Refusal {
  readonly reason: 'Prohibited' | 'Taken';
  readonly message: string;
}

/** What to do next. */
export type Step =
  | { readonly do: 'look'; readonly id: string }
  | { readonly do: 'check'; readonly name: string }
  | { readonly do: 'intend'; readonly status: VMStatus; readonly event?: Happening }
  | { readonly do: 'create'; readonly server: NewServer; readonly key: string }
  /** Write this, and rest; or come again although nothing happens. */
  | { readonly do: 'tell'; readonly status: VMStatus; readonly event?: Happening; readonly againMs?: number }
  | { readonly do: 'nothing' };

/** A name that is prohibited, or another's, may become free: nobody tells us. */
const NAME_AGAIN_MS = 5 * 60_000;

/**
 * The next step for an object that is wanted. What is lost is not made anew unasked: it had an id, an address and
 * perhaps data, which a new one does not have.
 * @param cluster marks what is ours
 */
export function plan(cluster: string, now: number, vm: VM, seen: Seen): Step {
  if (isPaused(vm)) return { do: 'nothing' };
  const { spec, status = {} } = vm;
  const { server, name } = seen;
  if (server === undefined) {
    if (status.vmId !== undefined) return { do: 'look', id: status.vmId };
    if (name === undefined) return { do: 'check', name: spec.vmname };
    if (name !== 'accepted') return { ...refused(vm, name, now), againMs: NAME_AGAIN_MS };
    if (!seen.intended) return { do: 'intend', status: pending(vm, now) };
    return { do: 'create', server: { name: spec.vmname, labels: marksOf(cluster, vm) }, key: keyFor(vm) };
  }
  if (!('gone' in server)) return { do: 'tell', status: observed(vm, server, now) };
  return mayRecreate(vm) ? recreated(vm, server, now) : lost(vm, server, now);
}

/** Whether an object's status is not what a list of the cloud's servers shows; a list that is old is good enough for that. */
export function isOutdated(vm: VM, servers: ReadonlyMap<string, Server>): boolean {
  const { metadata, status = {} } = vm;
  if (isPaused(vm) || metadata.deletionTimestamp !== undefined) return false;
  const isUnknown = conditionOf(status.conditions, 'Ready')?.reason === 'CloudUnreachable';
  if (status.vmId === undefined) return isUnknown; // else it is on its way by itself
  const server = servers.get(status.vmId);
  if (server === undefined) return isUnknown || mayRecreate(vm) || !isTrue(status.conditions, 'VmLost');
  const { opStatus, cpuUtilization, msg } = observed(vm, server, 0);
  return opStatus !== status.opStatus || cpuUtilization !== status.cpuUtilization || msg !== status.msg;
}

/**
 * Servers of ours that belong to no object. They must have been listed before the UIDs: a server is asked for after its
 * object was stored, and UIDs do not come back, so whose object is not there then is nobody's, for good.
 * @param namespaces those we look at: in others somebody else may
 */
export function strangers(
  servers: readonly Server[],
  uids: ReadonlySet<string>,
  namespaces?: readonly string[],
): readonly Server[] {
  return servers.filter((server) => {
    const uid = ownerOf(server);
    const isOurs = uid !== undefined && (namespaces?.includes(namespaceOf(server)) ?? true);
    return isOurs && !uids.has(uid) && server.state !== 'deleting';
  });
}

function mayRecreate({ metadata }: VM): boolean {
  return metadata.annotations?.[RECREATE] === 'true';
}

/** The status of an object whose server is there. */
export function observed(vm: VM, { id, state, cpuUtilization, message }: Server, now: number): VMStatus {
  const { cpuUtilization: _, conditions: were, ...before } = vm.status ?? {};
  const conditions = were?.filter(({ type }) => type !== 'VmLost');
  const known = { ...before, vmId: id, ...(conditions && { conditions }) };
  switch (state) {
    case 'building':
      return tell(
        vm,
        { ...known, opStatus: 'New' },
        now,
        'False',
        'Building',
        'the cloud is making the machine',
      );
    case 'running':
      return tell(
        vm,
        { ...known, opStatus: 'Running', cpuUtilization },
        now,
        'True',
        'Running',
        'the machine runs',
      );
    case 'failed': {
      const why = `the cloud could not start the machine: ${message ?? 'it does not say why'}; delete the VM, or have its server mended`;
      return tell(vm, { ...known, opStatus: 'Failed' }, now, 'False', 'MachineFailed', why);
    }
    case 'deleting': {
      const why = 'somebody else is deleting the machine';
      return tell(vm, { ...known, opStatus: 'Unknown' }, now, 'False', 'MachineDeleting', why);
    }
  }
}

/** The status of an object when the cloud could not be asked, or has refused: what was known of it stays. */
export function failed(
  vm: VM,
  { reason, message }: Pick<Condition, 'reason' | 'message'>,
  now: number,
): VMStatus {
  const { cpuUtilization: _, ...before } = vm.status ?? {};
  const opStatus = reason === 'CloudUnreachable' ? 'Unknown' : 'Failed';
  return tell(
    vm,
    { ...before, opStatus },
    now,
    opStatus === 'Unknown' ? 'Unknown' : 'False',
    reason,
    message,
  );
}

function pending(vm: VM, now: number): VMStatus {
  const { attempts = 0, opStatus = 'New', ...before } = vm.status ?? {};
  // Counted, since only a status that differs is written, and only a write is compared with what is stored.
  const status = accepted(vm, { ...before, opStatus, attempts: attempts + 1 }, now);
  return opStatus === 'New'
    ? tell(vm, status, now, 'False', 'Creating', 'the cloud is asked for a machine')
    : status;
}

function refused(vm: VM, { reason, message }: Refusal, now: number) {
  const { cpuUtilization: _, ...before } = vm.status ?? {};
  const condition = { type: 'NameAccepted', status: 'False', reason, message } as const;
  const conditions = setCondition(before.conditions, { ...condition, ...generationOf(vm) }, now);
  const status = tell(
    vm,
    { ...before, opStatus: 'Failed', conditions },
    now,
    'False',
    `Name${reason}`,
    message,
  );
  return { do: 'tell', status, event: { type: 'Warning', reason: `Name${reason}`, note: message } } as const;
}

function accepted(vm: VM, status: VMStatus, now: number): VMStatus {
  const message = 'the cloud accepts the name';
  const condition = { type: 'NameAccepted', status: 'True', reason: 'Accepted', message } as const;
  return {
    ...status,
    conditions: setCondition(status.conditions, { ...condition, ...generationOf(vm) }, now),
  };
}

function lost(vm: VM, { gone: vmId }: Gone, now: number): Step {
  const { cpuUtilization: _, ...before } = vm.status ?? {};
  const message = `the cloud has no machine ${vmId} any more; delete the VM, or annotate it with ${RECREATE}=true to have a new one`;
  const condition = { type: 'VmLost', status: 'True', reason: 'NotFound', message } as const;
  const conditions = setCondition(before.conditions, { ...condition, ...generationOf(vm) }, now);
  const status = tell(
    vm,
    { ...before, vmId, opStatus: 'Unknown', conditions },
    now,
    'False',
    'VmLost',
    message,
  );
  return { do: 'tell', status, event: { type: 'Warning', reason: 'VmLost', note: message } };
}

/** A new machine has a new id, and a new key: the old one stands for what is gone. */
function recreated(vm: VM, { gone }: Gone, now: number): Step {
  const { vmId: _id, cpuUtilization: _, recreations = 0, ...before } = vm.status ?? {};
  const conditions = before.conditions?.filter(({ type }) => type !== 'VmLost');
  const known = {
    ...before,
    ...(conditions && { conditions }),
    opStatus: 'Unknown',
    recreations: recreations + 1,
  } as const;
  const message = `machine ${gone} is gone; a new one is made`;
  const status = tell(vm, known, now, 'False', 'Recreating', message);
  return { do: 'intend', status, event: { type: 'Normal', reason: 'Recreating', note: message } };
}

function tell(
  vm: VM,
  status: VMStatus,
  now: number,
  ready: Condition['status'],
  reason: string,
  message: string,
): VMStatus {
  const condition = { type: 'Ready', status: ready, reason, message, ...generationOf(vm) };
  return { ...status, msg: message, conditions: setCondition(status.conditions, condition, now) };
}

function generationOf({ metadata: { generation } }: VM): { readonly observedGeneration?: number } {
  return generation === undefined ? {} : { observedGeneration: generation };
}
