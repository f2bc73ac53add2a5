import { shouldRun, type VirtualMachine } from './virtual-machine.ts';

/**
 * Values of the column `vms.status` by the state of a VM. The first seventeen keys are the values of KubeVirt's
 * `status.printableStatus`.
 */
const DEFAULTS = {
  Running: 'POWERED_ON',
  Migrating: 'POWERED_ON',
  Stopped: 'POWERED_OFF',
  Starting: 'POWERING_ON',
  Stopping: 'POWERING_OFF',
  Terminating: 'POWERING_OFF',
  Paused: 'SUSPENDED',
  Provisioning: 'STARTING',
  WaitingForVolumeBinding: 'STARTING',
  WaitingForReceiver: 'STARTING',
  CrashLoopBackOff: 'ERROR',
  ErrorUnschedulable: 'ERROR',
  ErrImagePull: 'ERROR',
  ImagePullBackOff: 'ERROR',
  ErrorPvcNotFound: 'ERROR',
  DataVolumeError: 'ERROR',
  Unknown: 'UNKNOWN',
  /** The VM has no printableStatus yet, and its spec requests that it runs. */
  NewRunning: 'STARTING',
  /** The VM has no printableStatus yet, and its spec does not request that it runs. */
  NewStopped: 'STOPPED',
  /** The VM has a deletionTimestamp. */
  Deleting: 'DELETING',
  /** The VM no longer exists. */
  Deleted: 'DELETED',
  /** KubeVirt reports a value that this table lacks. */
  Unrecognized: 'UNKNOWN',
} as const;

/** State of a VM, as a key of the status mapping. */
export type VmState = keyof typeof DEFAULTS;

/** Value of the column `vms.status` for each state. */
export type StatusMapping = Readonly<Record<VmState, string>>;

export const DEFAULT_MAPPING: StatusMapping = DEFAULTS;

export function isVmState(text: string): text is VmState {
  return Object.hasOwn(DEFAULTS, text);
}

/** States that are not values of printableStatus. */
const DERIVED: ReadonlySet<string> = new Set<VmState>([
  ...(['NewRunning', 'NewStopped', 'Deleting', 'Deleted', 'Unrecognized'] as const),
]);

/** Returns the state of an existing VM. */
export function stateOf(vm: VirtualMachine): VmState {
  if (vm.metadata.deletionTimestamp !== undefined) return 'Deleting';
  const printable = vm.status?.printableStatus ?? '';
  if (printable === '') return shouldRun(vm) ? 'NewRunning' : 'NewStopped';
  return isVmState(printable) && !DERIVED.has(printable) ? printable : 'Unrecognized';
}

/**
 * Returns whether the state may end within a second: KubeVirt briefly reports `Stopped` while a VM that should run is
 * created, restarted or failed over.
 */
export function isTransient(vm: VirtualMachine, state: VmState): boolean {
  return state === 'Stopped' && shouldRun(vm);
}
