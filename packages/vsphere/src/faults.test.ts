import { describe, expect, test } from 'vitest';
import { FaultError, faultOf, isA } from './index.ts';

const vm = { type: 'VirtualMachine', value: 'vm-7' };

describe('a fault has a message and a code', () => {
  test.each([
    ['NotAuthenticated', {}, '', 'NOT_AUTHENTICATED', 'x: the session has ended'],
    [
      'NoPermission',
      { object: vm, privilegeId: 'VirtualMachine.Interact.PowerOn' },
      'Permission denied.',
      'NO_PERMISSION',
      'x: the user lacks the privilege VirtualMachine.Interact.PowerOn on VirtualMachine vm-7 (Permission denied)',
    ],
    [
      'ManagedObjectNotFound',
      { obj: vm },
      '',
      'OBJECT_NOT_FOUND',
      'x: VirtualMachine vm-7 does not exist any more',
    ],
    [
      'DuplicateName',
      { name: 'n', object: vm },
      '',
      'DUPLICATE_NAME',
      "x: the name 'n' is already used by VirtualMachine vm-7",
    ],
    [
      'InvalidPowerState',
      { existingState: 'poweredOn', requestedState: 'poweredOff' },
      '',
      'INVALID_POWER_STATE',
      'x: the machine is poweredOn; the operation requires poweredOff',
    ],
    [
      'InvalidPowerStateFault',
      {},
      '',
      'INVALID_POWER_STATE',
      'x: vCenter returned the fault InvalidPowerStateFault',
    ],
    ['InvalidState', {}, 'Not now', 'INVALID_STATE', 'x: Not now (InvalidState)'],
    [
      'TaskInProgress',
      { task: { type: 'Task', value: 'task-1' } },
      '',
      'TASK_IN_PROGRESS',
      'x: another task is in progress on the object (Task task-1)',
    ],
    ['ResourceInUse', {}, '', 'RESOURCE_IN_USE', 'x: vCenter returned the fault ResourceInUse'],
    ['RequestCanceled', {}, '', 'REQUEST_CANCELED', 'x: the operation was cancelled'],
    [
      'InvalidArgument',
      { invalidProperty: 'spec.location.pool' },
      '',
      'INVALID_ARGUMENT',
      'x: vCenter rejected the value of spec.location.pool',
    ],
    ['NotFound', {}, '', 'NOT_FOUND', 'x: vCenter returned the fault NotFound'],
    // A type that derives from a known type and has no known fields of its own.
    [
      'InsufficientMemoryResourcesFault',
      {},
      'No memory',
      'INSUFFICIENT_RESOURCES',
      'x: No memory (InsufficientMemoryResourcesFault)',
    ],
    // A type that the schema does not have.
    ['FluxCapacitorEmpty', {}, '', 'FAULT', 'x: vCenter returned the fault FluxCapacitorEmpty'],
  ])('the fault %s has a message and a code', (type, detail, message, code, text) => {
    const error = new FaultError('x', type, { _type: type, ...detail }, message);
    expect([error.code, error.message, error.effectUnknown]).toEqual([code, text, false]);
  });
});

test('faultOf returns a fault only if it is of the given type or of a subtype', () => {
  const fault = { _type: 'InvalidPowerState', existingState: 'suspended' };
  const error = new FaultError('x', 'InvalidPowerState', fault, '');
  expect(faultOf(error, 'InvalidPowerState')?.existingState).toBe('suspended');
  expect(faultOf(error, 'InvalidState')).toBeDefined();
  expect(faultOf(error, 'NoPermission')).toBe(undefined);
  expect(faultOf(new Error('x'), 'InvalidState')).toBe(undefined);
});

test('isA narrows an object to its type or a base type', () => {
  const device = { _type: 'VirtualVmxnet3', key: 4000, macAddress: 'm' };
  expect(isA(device, 'VirtualEthernetCard') && device.macAddress).toBe('m');
  expect(isA(device, 'VirtualDisk')).toBe(false);
});
