import { conditionOf, type EventInput, type KubeObject, keyOf } from '@vmwright/runtime';
import { isPaused } from '../annotations.ts';
import type { KubevirtMachine } from '../kubevirt/kinds.ts';
import type { Action } from './actions.ts';
import { conflictMessage, isHeldByOther } from './addresses.ts';
import { machineDraft, secretDraft, shouldRun } from './children.ts';
import { cloudInitOf } from './cloud-init.ts';
import type { VirtualMachineReason } from './conditions.ts';
import { diagnose } from './diagnosis.ts';
import { type DiskPlan, planDisk } from './disk.ts';
import { differs } from './drift.ts';
import { planImage } from './image.ts';
import { currentVolumeName, type Observed } from './observe.ts';
import type { Problem } from './problem.ts';
import type { VirtualMachine, VirtualMachineStatus } from './resource.ts';
import { endsBackoff, isRunning, planRestart, restartRecord, restartRequired } from './restart.ts';
import { type Report, statusOf } from './status.ts';
import { changedNamesMessage, collisionMessage, userNamesOf } from './user-names.ts';

/** Result of planning a reconcile of a VirtualMachine. */
export interface Plan {
  /**
   * Status to report if the actions succeed. If it has a new intent (`hasNewIntent`), it must be stored before the
   * first action.
   */
  readonly status: VirtualMachineStatus;
  /** Actions to execute in this order. */
  readonly actions: readonly Action[];
  readonly events: readonly EventInput[];
  /** Time after which to reconcile again even if no object changes, in milliseconds. */
  readonly requeueAfterMs?: number;
}

/**
 * Interval of retries after a password could not be read. Retries are needed because the operator does not watch users'
 * Secrets.
 */
const PASSWORD_RETRY_MS = 30_000;

/**
 * Plans the next step for a VirtualMachine that is not being deleted. The children are created in the order of their
 * dependencies: image, cloud-init data and root disk, then the machine. A paused VirtualMachine is only observed.
 */
export function plan(vm: VirtualMachine, observed: Observed, now: number): Plan {
  const changedNames = changedNamesMessage(userNamesOf(vm));
  const rejection = rejectionOf(vm, observed);
  if (rejection !== undefined) {
    const parts = { changedNames, restarts: restartRecord(vm), report: rejection };
    const status = statusOf(vm, observed, parts, now);
    return withEvents(vm, { status, actions: planHalt(vm, observed), events: [] });
  }
  const image = planImage(vm, observed);
  const disk = planDisk(vm, observed, image);
  const isDiskReady = disk.state === 'ready';
  const restart = planRestart(vm, observed, { isDiskReady, isCurrent: isCurrent(vm, observed, disk) }, now);
  const children = planChildren(vm, observed, disk, isDiskReady && endsBackoff(observed, restart.record));
  const report = reportOf(vm, observed, disk, children.problem);
  const parts = { image, changedNames, restartRequired: restartMessage(observed), report };
  if (isPaused(vm)) {
    const { snapshot, dataVolume } = vm.status ?? {};
    const kept = { condition: disk.condition, snapshot, dataVolume };
    const all = { ...parts, disk: kept, restarts: restartRecord(vm) };
    return { status: statusOf(vm, observed, all, now), actions: [], events: [] };
  }
  const passwordMs = children.problem && PASSWORD_RETRY_MS;
  const waits = [restart.requeueAfterMs, disk.requeueAfterMs, passwordMs].flatMap((ms) => ms ?? []);
  return withEvents(vm, {
    status: statusOf(vm, observed, { ...parts, disk, restarts: restart.record }, now),
    actions: [...image.actions, ...children.secret, ...disk.actions, ...children.machine, ...restart.actions],
    events: [...disk.events, ...restart.events],
    ...(waits.length > 0 && { requeueAfterMs: Math.min(...waits) }),
  });
}

/** Returns why children may not be created until a user changes something; undefined if they may be created. */
function rejectionOf(vm: VirtualMachine, observed: Observed): Problem | undefined {
  const { addressConflict } = observed;
  const failed = (reason: VirtualMachineReason, message: string): Problem => ({
    phase: 'Failed',
    reason,
    message,
  });
  const collision = collisionMessage(userNamesOf(vm));
  if (collision !== undefined) return failed('UserNamesCollide', collision);
  if (addressConflict === undefined) return undefined;
  const isHalted = observed.machine !== undefined && isHeldByOther(vm, addressConflict) && !isPaused(vm);
  const message = conflictMessage(vm, addressConflict);
  return failed('AddressConflict', isHalted ? `${message}; the machine is halted until then` : message);
}

/**
 * Halts a machine if another VirtualMachine keeps its address. Such a conflict arises if both VirtualMachines were
 * admitted at the same moment, or restored from a backup. Until the conflict is over, the halt is the only planned
 * action.
 */
function planHalt(
  vm: VirtualMachine,
  { addressConflict, volumes, machine }: Observed,
): readonly ApplyMachine[] {
  if (addressConflict === undefined || !isHeldByOther(vm, addressConflict) || isPaused(vm)) return [];
  if (machine?.spec?.runStrategy === 'Halted') return [];
  const wanted = machineDraft(vm, currentVolumeName(vm, volumes, machine), true);
  return machine === undefined
    ? []
    : applyMachine(machine, wanted, 'another VirtualMachine keeps its address');
}

type ApplyMachine = Extract<Action, { type: 'applyMachine' }>;

/**
 * Returns the action that applies the draft to the KubeVirt VirtualMachine; none if it already matches or is
 * terminating.
 */
function applyMachine(
  machine: KubevirtMachine | undefined,
  wanted: KubevirtMachine,
  reason = machine === undefined ? 'the VirtualMachine has no machine' : 'the machine differs from the spec',
): readonly ApplyMachine[] {
  if (machine?.metadata.deletionTimestamp !== undefined) return [];
  if (machine !== undefined && !differs(machine, wanted)) return [];
  return [
    { type: 'applyMachine', machine: withUidOf(machine, wanted), isNew: machine === undefined, reason },
  ];
}

/**
 * Whether there is nothing to apply to the KubeVirt VirtualMachine: it has the desired spec, is being deleted, or no
 * disk is planned.
 */
function isCurrent(vm: VirtualMachine, { machine }: Observed, { dataVolume }: DiskPlan): boolean {
  return dataVolume === undefined || applyMachine(machine, machineDraft(vm, dataVolume)).length === 0;
}

interface ChildrenPlan {
  readonly secret: readonly Action[];
  readonly machine: readonly Action[];
  readonly problem?: Problem;
}

/**
 * Plans the Secret and the KubeVirt VirtualMachine. Objects that match their draft are not applied again.
 * @param isHeld whether the operator temporarily halts the machine
 */
function planChildren(vm: VirtualMachine, observed: Observed, disk: DiskPlan, isHeld: boolean): ChildrenPlan {
  const { passwords, secret, machine } = observed;
  const { state, dataVolume } = disk;
  if (state === 'missing' || dataVolume === undefined) return { secret: [], machine: [] };
  // An unreadable password is a problem only while there is no Secret. An existing Secret is kept as it is: cloud-init
  // uses the password only at the first boot.
  if ('problem' in passwords && secret === undefined)
    return { secret: [], machine: [], problem: { phase: 'Provisioning', ...passwords.problem } };
  const applySecret: Action[] = [];
  if (!('problem' in passwords)) {
    const wanted = secretDraft(vm, cloudInitOf(vm, passwords.hashes));
    if (secret === undefined || differs(secret, wanted))
      applySecret.push({
        type: 'applySecret',
        secret: withUidOf(secret, wanted),
        isNew: secret === undefined,
      });
  }
  const isBeingHalted = isHeld && shouldRun(vm) && machine?.spec?.runStrategy !== 'Halted';
  const reason = isBeingHalted ? 'a halt ends the back-off of KubeVirt after a failed start' : undefined;
  return {
    secret: applySecret,
    machine: applyMachine(machine, machineDraft(vm, dataVolume, isHeld), reason),
  };
}

/** Returns the draft with the UID of the existing object, so that another object of the same name is not changed. */
function withUidOf<T extends KubeObject>(existing: T | undefined, wanted: T): T {
  const { uid } = existing?.metadata ?? {};
  return uid === undefined ? wanted : { ...wanted, metadata: { ...wanted.metadata, uid } };
}

/**
 * Returns the state to report. A machine that runs is Ready, even if the plan has found a problem. The same is true of
 * a machine with `ignoreOnDeploy` that is prepared and stopped.
 */
function reportOf(
  vm: VirtualMachine,
  observed: Observed,
  disk: DiskPlan,
  problem: Problem | undefined,
): Report {
  const { machine } = observed;
  const { printableStatus = '' } = machine?.status ?? {};
  if (shouldRun(vm) && isRunning(observed))
    return { phase: 'Ready', reason: 'Running', message: 'The machine is running' };
  const isStopped = printableStatus === 'Stopped' && machine?.spec?.runStrategy === 'Halted';
  if (!shouldRun(vm) && disk.state === 'ready' && isStopped) {
    const message = 'The machine is prepared and stays stopped (spec.ignoreOnDeploy)';
    return { phase: 'Ready', reason: 'IgnoredOnDeploy', message };
  }
  const cause = disk.problem ?? problem ?? diagnose(vm, observed);
  if (cause !== undefined) return cause;
  const wait = (reason: VirtualMachineReason, message: string): Problem => ({
    phase: 'Provisioning',
    reason,
    message,
  });
  if (disk.state !== 'ready') return wait(disk.condition.reason, disk.condition.message);
  if (machine === undefined) return wait('CreatingMachine', 'The KubeVirt VirtualMachine is being created');
  if (machine.metadata.deletionTimestamp !== undefined)
    return wait(
      'MachineDeleting',
      `The KubeVirt VirtualMachine ${keyOf(vm.metadata)} was deleted; it is created again when it is gone`,
    );
  if (shouldRun(vm) && printableStatus === 'Stopping')
    return wait('NotRunning', 'The machine is stopping; KubeVirt starts it again');
  return shouldRun(vm)
    ? wait('Starting', 'KubeVirt is starting the machine')
    : wait('Stopping', 'KubeVirt is stopping the machine');
}

function restartMessage(observed: Observed): string | undefined {
  const cause = restartRequired(observed);
  return cause === undefined
    ? undefined
    : `A change takes effect only after a restart of the machine: ${cause}`;
}

/**
 * Adds the events about changed user names and about a new problem. Each event is recorded only when the message of its
 * condition changes.
 */
function withEvents(vm: VirtualMachine, result: Plan): Plan {
  const before = vm.status?.conditions;
  const { conditions } = result.status;
  const names = conditionOf(conditions, 'UserNamesChanged');
  const stalled = conditionOf(conditions, 'Stalled');
  const news = [names, stalled].flatMap((condition) => {
    if (condition === undefined || conditionOf(before, condition.type)?.message === condition.message)
      return [];
    const reason = condition === names ? 'UserNamesChanged' : condition.reason;
    return [{ type: 'Warning', reason, note: condition.message } as const];
  });
  return { ...result, events: [...result.events, ...news] };
}
