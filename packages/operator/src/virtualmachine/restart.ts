import { conditionOf, type EventInput, exponentialMs } from '@vmwright/runtime';
import type { KubevirtMachineSpec } from '../kubevirt/kinds.ts';
import type { Action } from './actions.ts';
import { shouldRun } from './children.ts';
import type { Observed } from './observe.ts';
import type { VirtualMachine, VirtualMachineStatus } from './resource.ts';

/** Fields of the status that restarts are recorded in. They are stored before the instance is deleted. */
export type RestartRecord = Pick<
  VirtualMachineStatus,
  'restarts' | 'restartedAt' | 'restartedGeneration' | 'restartedInstance' | 'stuckSince'
>;

/** Plan for an instance that may need a restart. */
export interface RestartPlan {
  readonly record: RestartRecord;
  readonly actions: readonly Action[];
  readonly events: readonly EventInput[];
  readonly requeueAfterMs?: number;
}

/**
 * Statuses of KubeVirt that a restart can resolve once the disk is ready. CrashLoopBackOff is not one of them, because
 * KubeVirt itself starts another instance after at most 5 minutes. The operator starts one earlier only if the failed
 * instance was started before the disk was ready (`isLate`).
 */
const STUCK: ReadonlySet<string> = new Set(['ErrorPvcNotFound', 'DataVolumeError']);

const BACKOFF = { baseMs: 10_000, maxMs: 5 * 60_000 };

/**
 * Whether a start of the machine has failed, or is stuck. KubeVirt clears `startFailure` when the next instance runs.
 */
function isFailing({ machine }: Pick<Observed, 'machine'>): boolean {
  const { printableStatus = '', startFailure } = machine?.status ?? {};
  return !isRunning({ machine }) && (startFailure !== undefined || STUCK.has(printableStatus));
}

/** Whether KubeVirt reports the machine as running and ready. */
export function isRunning({ machine }: Pick<Observed, 'machine'>): boolean {
  const { printableStatus, ready } = machine?.status ?? {};
  return ready === true && (printableStatus === 'Running' || printableStatus === 'Migrating');
}

/**
 * Returns why a change takes effect only after a restart; undefined if no restart is needed. Usually KubeVirt reports
 * this in the condition RestartRequired. But KubeVirt may miss a change after a restart that left the generation
 * unchanged, because it may have deleted the ControllerRevision that it compares with. So the operator itself also
 * compares the root disk and the number of CPUs.
 */
export function restartRequired({
  machine,
  instance,
}: Pick<Observed, 'machine' | 'instance'>): string | undefined {
  if (isDiskReplaced({ machine, instance }))
    return 'the root disk was replaced. The operator does not restart the machine, because that would delete the data of the old disk';
  const condition = conditionOf(machine?.status?.conditions, 'RestartRequired');
  if (condition?.status === 'True') return condition.message ?? '';
  const [wanted, actual] = [machine?.spec?.template?.spec, instance?.spec];
  if (wanted === undefined || actual === undefined) return undefined;
  return wanted.domain.cpu?.cores === actual.domain.cpu?.cores
    ? undefined
    : 'the number of virtual CPUs was changed';
}

/**
 * Whether the instance runs with another root disk than the next instance will. The old disk was deleted, but exists
 * until the instance stops.
 */
function isDiskReplaced({ machine, instance }: Pick<Observed, 'machine' | 'instance'>): boolean {
  const [wanted, actual] = [machine?.spec?.template?.spec, instance?.spec];
  return wanted !== undefined && actual !== undefined && rootDiskOf(wanted) !== rootDiskOf(actual);
}

function rootDiskOf({ volumes }: KubevirtMachineSpec): string | undefined {
  return volumes?.find(({ dataVolume }) => dataVolume !== undefined)?.dataVolume?.name;
}

/**
 * Whether the root disk has just become ready, after a start of the machine had failed. Such a failure says nothing
 * about the next start. True only once for each disk: the reconcile then stores VolumeReady as True.
 */
function isLate({ status }: VirtualMachine, { machine }: Observed, isDiskReady: boolean): boolean {
  const hasFailed = machine?.status?.startFailure !== undefined;
  return hasFailed && isDiskReady && conditionOf(status?.conditions, 'VolumeReady')?.status === 'False';
}

/**
 * Whether the operator has restarted an instance and KubeVirt still reports its failure (`startFailure`). The machine
 * then has to be halted until KubeVirt clears the failure. Otherwise KubeVirt would wait for up to 5 minutes before it
 * starts the next instance.
 */
export function endsBackoff(
  { machine, instance }: Pick<Observed, 'machine' | 'instance'>,
  { restartedInstance }: RestartRecord,
): boolean {
  const { uid = restartedInstance } = instance?.metadata ?? {};
  const failed = machine?.status?.startFailure?.lastFailedVMIUID;
  return failed !== undefined && failed === restartedInstance && failed === uid; // otherwise another instance is already starting
}

/** Returns the record of earlier restarts. */
export function restartRecord({ status }: VirtualMachine): RestartRecord {
  const { restarts, restartedAt, restartedGeneration, restartedInstance, stuckSince } = status ?? {};
  return {
    ...(restarts !== undefined && { restarts }),
    ...(restartedAt !== undefined && { restartedAt }),
    ...(restartedGeneration !== undefined && { restartedGeneration }),
    ...(restartedInstance !== undefined && { restartedInstance }),
    ...(stuckSince !== undefined && { stuckSince }),
  };
}

/**
 * Plans the restart of an instance, in these cases:
 * - A change needs a restart (updatePolicy Restart): one restart for each change. No restart if the root disk was
 *   replaced: it would delete the old disk, which the running guest still uses.
 * - The machine is stuck although its disk is ready, for example because it started before the disk was cloned:
 *   restarts with a back-off.
 * - The machine was started before its disk was ready, and failed: one restart, without a back-off.
 * @param isDiskReady whether the root disk is cloned
 * @param isCurrent whether the KubeVirt VirtualMachine has the desired spec
 */
export function planRestart(
  vm: VirtualMachine,
  observed: Observed,
  { isDiskReady, isCurrent }: { readonly isDiskReady: boolean; readonly isCurrent: boolean },
  now: number,
): RestartPlan {
  const { machine, instance } = observed;
  const { stuckSince, restarts, ...others } = restartRecord(vm);
  // A machine that became ready starts with the shortest back-off again.
  const record = { ...others, ...(restarts !== undefined && !isRunning(observed) && { restarts }) };
  const nothing = { record, actions: [], events: [] };
  const isAlive = instance !== undefined && instance.metadata.deletionTimestamp === undefined;
  if (!shouldRun(vm) || machine === undefined) return nothing;
  const time = new Date(now).toISOString();
  if (isLate(vm, observed, isDiskReady) && !isRunning(observed) && !isDiskReplaced(observed)) {
    const { uid: restartedInstance = machine.status?.startFailure?.lastFailedVMIUID } =
      instance?.metadata ?? {};
    const reason = 'it was started before its root disk was ready, and failed';
    return {
      record: {
        ...record,
        restarts: (restarts ?? 0) + 1,
        restartedAt: time,
        ...(restartedInstance !== undefined && { restartedInstance }),
      },
      actions: isAlive ? restart(instance.metadata.uid, reason) : [],
      events: [{ type: 'Warning', reason: 'Restarted', note: noteOf(reason) }],
    };
  }
  if (!isAlive) return nothing;
  const { uid } = instance.metadata;
  const message = restartRequired(observed);
  const { generation } = machine.metadata;
  const isForChange = message !== undefined && vm.spec.updatePolicy === 'Restart';
  const isRestarted = generation === record.restartedGeneration;
  // True if the operator stopped after it had stored the restart, and before it deleted the instance. If the instance
  // has recovered since then (`isNeeded` is false), it is kept.
  const isInterrupted = uid !== undefined && uid === record.restartedInstance;
  const isNeeded = isFailing(observed) || (isForChange && isRestarted);
  if (isInterrupted && isNeeded && isDiskReady && !isDiskReplaced(observed))
    return { ...nothing, actions: restart(uid, 'an earlier restart was interrupted') };
  const restarted = { restartedAt: time, ...(uid !== undefined && { restartedInstance: uid }) };
  if (isForChange && isCurrent && isDiskReady && !isDiskReplaced(observed) && !isRestarted) {
    const reason = `a change takes effect only after a restart (${message})`;
    const events = [{ type: 'Normal', reason: 'Restarted', note: noteOf(reason) }] as const;
    return {
      record: {
        ...record,
        ...restarted,
        ...(generation !== undefined && { restartedGeneration: generation }),
      },
      actions: restart(uid, reason),
      events,
    };
  }
  const status = machine.status?.printableStatus ?? '';
  if (!isDiskReady || !STUCK.has(status)) return nothing;
  const since = stuckSince ?? time;
  const waitMs = Date.parse(since) + exponentialMs((restarts ?? 0) + 1, BACKOFF) - now;
  if (waitMs > 0) return { ...nothing, record: { ...record, stuckSince: since }, requeueAfterMs: waitMs };
  const reason = `KubeVirt reports ${status} although the root disk is ready`;
  return {
    record: { ...record, restarts: (restarts ?? 0) + 1, ...restarted },
    actions: restart(uid, reason),
    events: [{ type: 'Warning', reason: 'Restarted', note: noteOf(reason) }],
  };
}

function restart(uid: string | undefined, reason: string): readonly Action[] {
  return [{ type: 'restart', uid, reason }];
}

function noteOf(reason: string): string {
  return `Restarting the machine, because ${reason}`;
}
