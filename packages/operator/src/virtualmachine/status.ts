import { type Condition, removeCondition, setCondition, withOutcome, withPaused } from '@vmwright/runtime';
import { pauseOf } from '../annotations.ts';
import { plainAddress } from './addresses.ts';
import type { VirtualMachineReason } from './conditions.ts';
import type { DiskPlan } from './disk.ts';
import type { ImagePlan } from './image.ts';
import { hasAddresses } from './metadata.ts';
import type { Observed } from './observe.ts';
import type { PlannedCondition, Problem } from './problem.ts';
import type { VirtualMachine, VirtualMachineStatus } from './resource.ts';
import type { RestartRecord } from './restart.ts';

/* The status of a VirtualMachine. Messages are the same on every retry, so that a retry writes nothing. */

/** The state that a status reports: ready, or why the machine is not ready. */
export type Report = Problem | (Pick<Problem, 'reason' | 'message'> & { readonly phase: 'Ready' });

/** Parts of a plan that the status of a VirtualMachine is made from. */
export interface StatusParts {
  readonly image?: Pick<ImagePlan, 'condition' | 'difference'> | undefined;
  readonly disk?: Pick<DiskPlan, 'condition' | 'snapshot' | 'dataVolume'> | undefined;
  /** Message of the condition UserNamesChanged. */
  readonly changedNames?: string | undefined;
  /** Message of the condition RestartRequired. */
  readonly restartRequired?: string | undefined;
  readonly restarts: RestartRecord;
  readonly report: Report;
}

/** Returns the status of a VirtualMachine that is not being deleted. */
export function statusOf(
  vm: VirtualMachine,
  observed: Observed,
  parts: StatusParts,
  now: number,
): VirtualMachineStatus {
  const { image, disk, changedNames, restartRequired, restarts, report } = parts;
  const { snapshot, dataVolume } = disk ?? vm.status ?? {};
  let conditions = vm.status?.conditions;
  const set = (type: string, condition: PlannedCondition | undefined) => {
    if (condition !== undefined)
      conditions = setCondition(conditions, { type, ...condition, ...generationOf(vm) }, now);
  };
  /** Sets a condition that is present only while it is True. */
  const setIf = (type: string, reason: VirtualMachineReason, message: string | undefined) => {
    if (message === undefined) conditions = removeCondition(conditions, type);
    else set(type, { status: 'True', reason, message });
  };
  set('DiskImageReady', image?.condition);
  set('VolumeReady', disk?.condition);
  setIf('ImageDiffers', 'TemplateIgnored', image?.difference);
  setIf('UserNamesChanged', 'IllegalNames', changedNames);
  setIf('RestartRequired', 'RestartRequired', restartRequired);
  const status: VirtualMachineStatus = {
    ...(snapshot !== undefined && { snapshot }),
    ...(dataVolume !== undefined && { dataVolume }),
    ...machineFields(vm, observed),
    ...restarts,
    ...(conditions && { conditions }),
  };
  return withReport(vm, status, report, now);
}

/** Returns the planned status, changed to report a problem that occurred while the actions were executed. */
export function problemStatus(
  vm: VirtualMachine,
  planned: VirtualMachineStatus,
  { part, ...problem }: Problem & { readonly part?: 'DiskImageReady' | 'VolumeReady' | undefined },
  now: number,
): VirtualMachineStatus {
  const { reason, message } = problem;
  const condition = part && { type: part, status: 'False' as const, reason, message, ...generationOf(vm) };
  const reported = withoutReport(planned.conditions, vm.status?.conditions);
  const conditions = condition ? setCondition(reported, condition, now) : reported;
  return withReport(vm, { ...planned, conditions }, problem, now);
}

/** Returns the planned status, in which the given condition VolumeReady replaces the planned one. */
export function withVolumeReady(
  vm: VirtualMachine,
  planned: VirtualMachineStatus,
  condition: PlannedCondition,
  now: number,
): VirtualMachineStatus {
  const volumeReady = { type: 'VolumeReady', ...condition, ...generationOf(vm) };
  return { ...planned, conditions: setCondition(planned.conditions, volumeReady, now) };
}

const REPORT = ['Ready', 'Reconciling', 'Stalled'];

/**
 * Returns the planned conditions, but the stored conditions of the types in `REPORT`. The caller then changes those
 * stored conditions to report the problem. If it changed the planned ones instead, a condition could change to its
 * planned state and back within one reconcile. Each retry would then write a new transition time.
 */
function withoutReport(
  planned: readonly Condition[] = [],
  stored: readonly Condition[] = [],
): readonly Condition[] {
  const isReport = ({ type }: Condition) => REPORT.includes(type);
  return [...planned.filter((each) => !isReport(each)), ...stored.filter(isReport)];
}

/** Returns the status of a VirtualMachine that is being deleted. */
export function deletingStatus(
  vm: VirtualMachine,
  message: string,
  state: 'progressing' | 'stalled',
  now: number,
): VirtualMachineStatus {
  const status = { ...vm.status, phase: 'Deleting', message } as const;
  return withOutcome(
    vm,
    withPaused(vm, status, pauseOf(vm), now),
    { state, reason: 'Deleting', message },
    now,
  );
}

/** Whether two statuses differ in a field that must be stored before the actions of a plan are executed. */
export function hasNewIntent(before: VirtualMachineStatus | undefined, after: VirtualMachineStatus): boolean {
  const fields = [
    ...(['snapshot', 'dataVolume', 'restarts', 'restartedAt'] as const),
    ...(['restartedGeneration', 'restartedInstance'] as const),
  ];
  return fields.some((field) => before?.[field] !== after[field]);
}

function withReport(
  vm: VirtualMachine,
  status: VirtualMachineStatus,
  { phase, reason, message }: Report,
  now: number,
): VirtualMachineStatus {
  const state = phase === 'Ready' ? 'ready' : phase === 'Failed' ? 'stalled' : 'progressing';
  const paused = withPaused(vm, { ...status, phase, message }, pauseOf(vm), now);
  return withOutcome(vm, paused, { state, reason, message }, now);
}

/** Statuses of KubeVirt in which the guest has a node and an address. */
const ON_NODE: ReadonlySet<string> = new Set(['Running', 'Migrating', 'Paused']);

/**
 * Returns what KubeVirt reports about the machine. Node and address are included only once the machine runs, so that
 * the status is not written separately for them.
 */
function machineFields(vm: VirtualMachine, { machine, instance }: Observed): Partial<VirtualMachineStatus> {
  const { printableStatus = '' } = machine?.status ?? {};
  if (!ON_NODE.has(printableStatus)) return printableStatus === '' ? {} : { printableStatus };
  const { nodeName = '', interfaces = [] } = instance?.status ?? {};
  const [first] = vm.spec.interfaces ?? [];
  const reported = interfaces.find(({ ipAddress }) => (ipAddress ?? '') !== '')?.ipAddress;
  const isConfigured = instance !== undefined && hasAddresses(instance, vm);
  const ip = reported ?? (first && isConfigured ? plainAddress(first.ipAddress) : undefined);
  return { printableStatus, ...(ip !== undefined && { ip }), ...(nodeName !== '' && { node: nodeName }) };
}

function generationOf({ metadata: { generation } }: VirtualMachine) {
  return generation === undefined ? {} : { observedGeneration: generation };
}
