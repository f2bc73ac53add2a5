import { expect, test } from 'vitest';
import { addressKeys, conflictMessage, findAddressConflict } from './addresses.ts';
import type { VirtualMachine } from './resource.ts';

function vm(
  namespace: string,
  name: string,
  ...interfaces: readonly (readonly [string, string])[]
): VirtualMachine {
  return {
    metadata: { namespace, name, uid: `${namespace}/${name}`, creationTimestamp: '2026-11-17T10:00:00Z' },
    spec: {
      resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' },
      vmDiskImageRef: { name: 'base' },
      interfaces: interfaces.map(([network, ipAddress]) => ({ network, ipAddress })),
    },
  };
}

const among = (...machines: readonly VirtualMachine[]) => ({
  *byIndex(_: string, key: string) {
    for (const each of machines) if (addressKeys(each).includes(key)) yield each;
  },
});
const always = () => true;

test('the same address on the same network is a conflict, whatever the prefix length or the notation', () => {
  const other = vm('b', 'other', ['a/net', '10.0.0.1/16'], ['net6', 'fd00:0:0::1/64']);
  const found = findAddressConflict(vm('a', 'demo', ['net', '10.0.0.1/24']), among(other), always);
  expect(found).toMatchObject({ address: '10.0.0.1', network: 'a/net', holder: { name: 'other' } });
  const six = findAddressConflict(vm('b', 'demo', ['net6', 'FD00::1/48']), among(other), always);
  expect(six).toMatchObject({ address: 'fd00::1', network: 'b/net6' });
});

test('an address does not conflict with itself, with the same address on another network, or with a machine for which `wins` returns false', () => {
  const demo = vm('a', 'demo', ['net', '10.0.0.1/24']);
  const other = vm('b', 'other', ['net', '10.0.0.1/24']);
  expect(findAddressConflict(demo, among(demo, other), always)).toBeUndefined();
  expect(findAddressConflict(vm('a', 'x', ['net', '10.0.0.1/24']), among(demo), () => false)).toBeUndefined();
});

test('two interfaces with the same address are a conflict of the machine with itself', () => {
  const demo = vm('a', 'demo', ['net', '10.0.0.1/24'], ['a/net', '10.0.0.1/24']);
  const conflict = findAddressConflict(demo, among(demo), always);
  expect(conflict && conflictMessage(demo, conflict)).toBe(
    'spec.interfaces: two interfaces have the address 10.0.0.1 on the network a/net. Change one of them',
  );
});

test('the message about an address conflict does not name a machine of another namespace', () => {
  const demo = vm('a', 'demo', ['net', '10.0.0.1/24']);
  const message = (holder: VirtualMachine) => {
    const conflict = findAddressConflict(demo, among(holder), always);
    return conflict && conflictMessage(demo, conflict);
  };
  expect(message(vm('a', 'secret', ['net', '10.0.0.1/24']))).toContain('"secret" in this namespace');
  expect(message(vm('b', 'secret', ['a/net', '10.0.0.1/24']))).not.toContain('secret');
});
