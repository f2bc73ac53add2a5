import { defineKind, schema } from '@vmwright/runtime';
import { fieldAt } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';

const { object, optional, string, boolean } = schema;

/** KubeVirt's VirtualMachine, as far as the scenario uses it. */
export const SimulatedVm = defineKind({
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachine',
  plural: 'virtualmachines',
  spec: object({ running: optional(boolean()), runStrategy: optional(string()) }),
  status: object({ printableStatus: optional(string()) }),
});

export const VAPP_LABEL = 'vapp.ssvirt.io/vapp-id';

/**
 * Status that a row shows for each state of its VM. Not imported from the operator, so that a change of the operator's
 * mapping does not also change the check.
 */
export const WORDS = {
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
  NewRunning: 'STARTING',
  NewStopped: 'STOPPED',
  Deleting: 'DELETING',
  Deleted: 'DELETED',
  Unrecognized: 'UNKNOWN',
} as const;

type State = keyof typeof WORDS;
export type Words = Readonly<Record<State, string>>;

/** A different status for each state, so that the order of statuses shows the order of states. */
export const DISTINCT_WORDS: Words = {
  ...WORDS,
  Migrating: 'MIGRATING',
  Terminating: 'TERMINATING',
  Provisioning: 'PROVISIONING',
  WaitingForVolumeBinding: 'WAITING_FOR_VOLUME',
  WaitingForReceiver: 'WAITING_FOR_RECEIVER',
  CrashLoopBackOff: 'CRASH_LOOP',
  ErrorUnschedulable: 'UNSCHEDULABLE',
  ErrImagePull: 'PULL_FAILED',
  ImagePullBackOff: 'PULL_BACK_OFF',
  ErrorPvcNotFound: 'NO_VOLUME',
  DataVolumeError: 'VOLUME_FAILED',
  Unrecognized: 'UNRECOGNIZED',
};

const DERIVED: readonly string[] = ['NewRunning', 'NewStopped', 'Deleting', 'Deleted', 'Unrecognized'];

/** Returns the state of an existing VM. */
function stateOf({ metadata, spec, status }: StoredObject): State {
  if (metadata.deletionTimestamp !== undefined) return 'Deleting';
  const printable = fieldAt(status, ['printableStatus']) ?? '';
  if (printable === '') return shouldRun(spec) ? 'NewRunning' : 'NewStopped';
  return isState(printable) && !DERIVED.includes(printable) ? printable : 'Unrecognized';
}

function isState(value: unknown): value is State {
  return typeof value === 'string' && Object.hasOwn(WORDS, value);
}

function shouldRun(spec: unknown): boolean {
  const running = fieldAt(spec, ['running']);
  if (typeof running === 'boolean') return running;
  return ['Always', 'RerunOnFailure', 'Once'].includes(String(fieldAt(spec, ['runStrategy'])));
}

/** Whether the VM's state `Stopped` may be transient, because the VM is about to start. */
export function isTransient(vm: StoredObject): boolean {
  return stateOf(vm) === 'Stopped' && shouldRun(vm.spec);
}

/** Returns the status that a row of this VM must show after convergence. */
export function statusOf(vm: StoredObject | undefined, words: Words): string {
  return vm === undefined ? words.Deleted : words[stateOf(vm)];
}
