import { describe, expect, test } from 'vitest';
import { DEFAULT_MAPPING, isTransient, isVmState, stateOf } from './mapping.ts';
import { leanVirtualMachine, shouldRun, VAPP_LABEL, type VirtualMachine } from './virtual-machine.ts';

function vm(printableStatus?: string, spec: VirtualMachine['spec'] = {}): VirtualMachine {
  return {
    metadata: { namespace: 'tenant', name: 'web', uid: 'u-1' },
    spec,
    status: { ...(printableStatus !== undefined && { printableStatus }) },
  };
}

const statusOf = (object: VirtualMachine) => DEFAULT_MAPPING[stateOf(object)];

describe('statuses', () => {
  test.each([
    ['Running', 'POWERED_ON'],
    ['Migrating', 'POWERED_ON'],
    ['Stopped', 'POWERED_OFF'],
    ['Starting', 'POWERING_ON'],
    ['Stopping', 'POWERING_OFF'],
    ['Terminating', 'POWERING_OFF'],
    ['Paused', 'SUSPENDED'],
    ['Provisioning', 'STARTING'],
    ['WaitingForVolumeBinding', 'STARTING'],
    ['WaitingForReceiver', 'STARTING'],
    ['CrashLoopBackOff', 'ERROR'],
    ['ErrorUnschedulable', 'ERROR'],
    ['ErrImagePull', 'ERROR'],
    ['ImagePullBackOff', 'ERROR'],
    ['ErrorPvcNotFound', 'ERROR'],
    ['DataVolumeError', 'ERROR'],
    ['Unknown', 'UNKNOWN'],
  ])('the status of a VM with printableStatus %s is %s', (printable, status) => {
    expect(statusOf(vm(printable))).toBe(status);
    expect(stateOf(vm(printable))).toBe(printable);
  });

  test.each([
    [{ running: true }, 'STARTING'],
    [{ running: false }, 'STOPPED'],
    [{ runStrategy: 'Always' }, 'STARTING'],
    [{ runStrategy: 'RerunOnFailure' }, 'STARTING'],
    [{ runStrategy: 'Once' }, 'STARTING'],
    [{ runStrategy: 'Manual' }, 'STOPPED'],
    [{ runStrategy: 'Halted' }, 'STOPPED'],
    [{ running: false, runStrategy: 'Always' }, 'STOPPED'],
    [{}, 'STOPPED'],
  ])('the status of a VM without printableStatus and with spec %j is %s', (spec, status) => {
    expect(statusOf(vm('', spec))).toBe(status);
    expect(statusOf(vm(undefined, spec))).toBe(status);
    expect(statusOf({ metadata: { name: 'web' }, spec })).toBe(status);
  });

  test('the status of a VM without a spec and a status is STOPPED', () => {
    expect(statusOf({ metadata: { name: 'web' } })).toBe('STOPPED');
  });

  test.each(['Running', 'Stopped', '', 'Sleeping'])(
    'the status of a VM with a deletionTimestamp and printableStatus "%s" is DELETING',
    (printable) => {
      const { metadata, ...rest } = vm(printable);
      const deleting = { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-11-16T10:00:00Z' } };
      expect(statusOf(deleting)).toBe('DELETING');
    },
  );

  test.each([
    'Sleeping',
    'running',
    'Deleting',
    'Deleted',
    'NewRunning',
    'NewStopped',
    'Unrecognized',
    'constructor',
    'toString',
    '__proto__',
  ])('the status of a VM with the unrecognized printableStatus %s is UNKNOWN', (printable) => {
    expect(stateOf(vm(printable))).toBe('Unrecognized');
    expect(statusOf(vm(printable))).toBe('UNKNOWN');
  });
});

test('names of inherited object properties, such as constructor, are not states of a VM', () => {
  expect(['Running', 'Deleted', 'constructor', 'hasOwnProperty', ''].map(isVmState)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('Stopped is transient only while the spec requests that the VM runs', () => {
  expect(isTransient(vm('Stopped', { runStrategy: 'Always' }), 'Stopped')).toBe(true);
  expect(isTransient(vm('Stopped', { running: true }), 'Stopped')).toBe(true);
  expect(isTransient(vm('Stopped', { running: false }), 'Stopped')).toBe(false);
  expect(isTransient(vm('Stopped', { runStrategy: 'Manual' }), 'Stopped')).toBe(false);
  expect(isTransient(vm('Stopping', { running: true }), 'Stopping')).toBe(false);
});

test('a cached VM keeps exactly the fields that the mirror reads', () => {
  const full = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: {
      namespace: 'tenant',
      name: 'web',
      uid: 'u-1',
      resourceVersion: '7',
      generation: 3,
      creationTimestamp: '2026-11-16T10:00:00Z',
      deletionTimestamp: '2026-11-16T11:00:00Z',
      labels: { [VAPP_LABEL]: 'v-1', app: 'web' },
      annotations: { note: 'long' },
      finalizers: ['kubevirt.io/x'],
    },
    spec: { running: false, runStrategy: 'Always', template: { spec: {} } },
    status: { printableStatus: 'Running', conditions: [] },
  };
  const lean = leanVirtualMachine(full);
  expect(lean).toEqual({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: {
      namespace: 'tenant',
      name: 'web',
      uid: 'u-1',
      resourceVersion: '7',
      creationTimestamp: '2026-11-16T10:00:00Z',
      deletionTimestamp: '2026-11-16T11:00:00Z',
      labels: { [VAPP_LABEL]: 'v-1' },
    },
    spec: { running: false, runStrategy: 'Always' },
    status: { printableStatus: 'Running' },
  });
  expect([stateOf(lean), shouldRun(lean)]).toEqual([stateOf(full), shouldRun(full)]);
  expect(leanVirtualMachine({ metadata: { name: 'bare' } })).toEqual({
    metadata: { name: 'bare' },
    spec: {},
    status: {},
  });
});
