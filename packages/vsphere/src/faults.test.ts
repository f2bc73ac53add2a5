import { describe, expect, test } from 'vitest';
import { FaultError, faultOf, isA } from './index.ts';

const vm = { type: 'VirtualMachine', value: 'vm-7' };

describe('a fault is a sentence and a code', () => {
  test.each([
    ['NotAuthenticated', {}, '', 'NOT_AUTHENTICATED', 'x: the session has ended'],
    [
      'NoPermission',
      { object: vm, privilegeId: 'VirtualMachine.Interact.PowerOn' },
      'Permission denied.',
      'NO_PERMISSION',
      'x: the user lacks the privilege VirtualMachine.Interact.PowerOn on VirtualMachine vm-7 (Permission denied)',
    ],
    ['ManagedObjectNotFound', { obj: vm }, '', 'OBJECT_NOT_FOUND', 'x: VirtualMachine vm-7 is gone'],
    [
      'DuplicateName',
      { name: 'n', object: vm },
      '',
      'DUPLICATE_NAME',
      "x: the name 'n' is taken by VirtualMachine vm-7",
    ],
    [
      'InvalidPowerState',
      { existingState: 'poweredOn', requestedState: 'poweredOff' },
      '',
      'INVALID_POWER_STATE',
      'x: it is poweredOn, and would have to be poweredOff',
    ],
    ['InvalidPowerStateFault', {}, '', 'INVALID_POWER_STATE', 'x: vCenter answers InvalidPowerStateFault'],
    ['InvalidState', {}, 'Not now', 'INVALID_STATE', 'x: Not now (InvalidState)'],
    [
      'TaskInProgress',
      { task: { type: 'Task', value: 'task-1' } },
      '',
      'TASK_IN_PROGRESS',
      'x: another task is at work on it, Task task-1',
    ],
    ['ResourceInUse', {}, '', 'RESOURCE_IN_USE', 'x: vCenter answers ResourceInUse'],
    ['RequestCanceled', {}, '', 'REQUEST_CANCELED', 'x: it was cancelled'],
    [
      'InvalidArgument',
      { invalidProperty: 'spec.location.pool' },
      '',
      'INVALID_ARGUMENT',
      'x: vCenter does not accept spec.location.pool',
    ],
    ['NotFound', {}, '', 'NOT_FOUND', 'x: vCenter answers NotFound'],
    // Not known with its fields, but by its base.
    [
      'InsufficientMemoryResourcesFault',
      {},
      'No memory',
      'INSUFFICIENT_RESOURCES',
      'x: No memory (InsufficientMemoryResourcesFault)',
    ],
    // Known to nobody yet.
    ['FluxCapacitorEmpty', {}, '', 'FAULT', 'x: vCenter answers FluxCapacitorEmpty'],
  ])('%s', (type, detail, message, code, sentence) => {
    const error = new FaultError('x', type, { _type: type, ...detail }, message);
    expect([error.code, error.message, error.effectUnknown]).toEqual([code, sentence, false]);
  });
});

test('a fault gives its fields to who asks for its type, or for one of its bases', () => {
  const error = new FaultError(
    'x',
    'InvalidPowerState',
    { _type: 'InvalidPowerState', ...{ existingState: 'suspended' } },
    '',
  );
  expect(faultOf(error, 'InvalidPowerState')?.existingState).toBe('suspended');
  expect(faultOf(error, 'InvalidState')).toBeDefined();
  expect(faultOf(error, 'NoPermission')).toBe(undefined);
  expect(faultOf(new Error('x'), 'InvalidState')).toBe(undefined);
});

test('an object that was read is told by its type', () => {
  const device = { _type: 'VirtualVmxnet3', key: 4000, macAddress: 'm' };
  expect(isA(device, 'VirtualEthernetCard') && device.macAddress).toBe('m');
  expect(isA(device, 'VirtualDisk')).toBe(false);
});
