import { expect, test } from 'vitest';
import { isAbandoned } from './deletion.ts';

test('an instance that no KubeVirt VirtualMachine controls is deleted by the operator', () => {
  const metadata = { namespace: 'work', name: 'demo', uid: 'u-2' };
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'demo', uid: 'u-1' };
  expect(isAbandoned({ metadata })).toBe(true);
  expect(isAbandoned({ metadata: { ...metadata, ownerReferences: [owner] } })).toBe(true);
  const controlled = { ...metadata, ownerReferences: [{ ...owner, controller: true }] };
  expect(isAbandoned({ metadata: controlled })).toBe(false);
});
