import { expect, test } from 'vitest';
import { admitVirtualMachines } from './admission.ts';
import type { VirtualMachine } from './resource.ts';

function vm(spec: Partial<VirtualMachine['spec']>, annotations: Record<string, string> = {}): VirtualMachine {
  return {
    metadata: { namespace: 'work', name: 'demo', uid: 'u-1', annotations },
    spec: {
      resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' },
      vmDiskImageRef: { name: 'base' },
      ...spec,
    },
  };
}

const info = {
  uid: 'r-1',
  name: 'demo',
  namespace: 'work',
  subresource: '',
  dryRun: false,
  user: { username: 'u', groups: [], extra: {} },
  signal: new AbortController().signal,
};
const { validate } = admitVirtualMachines(undefined);
const created = (object: VirtualMachine) => validate?.(object, { ...info, operation: 'CREATE' });
const updated = (before: VirtualMachine, object: VirtualMachine) =>
  validate?.(object, { ...info, operation: 'UPDATE', before });

test('a user name that has to be changed and a plain-text password are accepted with warnings', () => {
  expect(created(vm({ users: [{ name: 'demo user', plain_text_passwd: 'x' }] }))).toEqual({
    allowed: true,
    warnings: [
      'spec.users: Linux does not allow these user names, so they were changed: "demo user" to "demo-user"',
      'spec.users: plain_text_passwd is readable by everyone who can read the VirtualMachine. Use passwordSecretRef instead',
    ],
  });
});

test('colliding user names and an unknown deletion policy are rejected', () => {
  expect(created(vm({ users: [{ name: 'A' }, { name: 'a' }] }))).toMatchObject({ allowed: false });
  expect(created(vm({}, { 'vmwright.dev/deletion-policy': 'Keep' }))).toMatchObject({ allowed: false });
});

test('a request that leaves the invalid part of an object unchanged is accepted without a warning', () => {
  const bad = vm(
    { users: [{ name: 'A' }, { name: 'a', plain_text_passwd: 'x' }] },
    { 'vmwright.dev/deletion-policy': 'Keep' },
  );
  const finalized = { ...bad, metadata: { ...bad.metadata, finalizers: [] } };
  expect(updated(bad, finalized)).toEqual({ allowed: true });
  const deleting = { ...bad, metadata: { ...bad.metadata, deletionTimestamp: '2026-11-17T10:00:00Z' } };
  expect(updated(vm({}), deleting)).toEqual({ allowed: true });
});

test('a foreground deletion is rejected if the deletion policy is Orphan', () => {
  const deleted = (policy: string, propagation?: string) =>
    validate?.(vm({}, { 'vmwright.dev/deletion-policy': policy }), {
      ...info,
      operation: 'DELETE',
      propagation,
    });
  expect(deleted('Orphan', 'Foreground')).toMatchObject({ allowed: false });
  expect(deleted('Orphan', 'Background')).toEqual({ allowed: true });
  expect(deleted('Orphan')).toEqual({ allowed: true });
  expect(deleted('Delete', 'Foreground')).toEqual({ allowed: true });
});
