import { expect, test } from 'vitest';
import type { DataVolume } from '../kubevirt/kinds.ts';
import { ownerKey, ownerKeys } from '../kubevirt/owner-index.ts';
import { currentVolumeName } from './observe.ts';
import type { VirtualMachine, VirtualMachineStatus } from './resource.ts';

const vm = (status?: VirtualMachineStatus): VirtualMachine => ({
  metadata: { namespace: 'work', name: 'demo', uid: '0a1b2c3d-0000' },
  spec: { resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' }, vmDiskImageRef: { name: 'base' } },
  ...(status && { status }),
});
const first = 'demo-root-0a1b2c3d';
const disk = (name: string, phase: string): DataVolume => ({ metadata: { name }, status: { phase } });
const using = (name: string) => ({
  metadata: { name: 'demo' },
  spec: {
    template: { spec: { domain: { devices: {} }, volumes: [{ name: 'root', dataVolume: { name } }] } },
  },
});

test('the name of the root disk comes from the status, unless the name in the status is invalid', () => {
  expect(currentVolumeName(vm({ dataVolume: `${first}-3` }), [], undefined)).toBe(`${first}-3`);
  expect(currentVolumeName(vm({ dataVolume: 'of-another' }), [], undefined)).toBe(first);
  expect(currentVolumeName(vm({ dataVolume: `${first}-x` }), [], undefined)).toBe(first);
});

test('if the status does not name the root disk, the disk that the machine uses is preferred, then a finished clone', () => {
  const disks = [
    disk(`${first}-2`, 'Succeeded'),
    disk(`${first}-3`, 'Pending'),
    disk('unrelated', 'Succeeded'),
  ];
  expect(currentVolumeName(vm(), disks, using(`${first}-3`))).toBe(`${first}-3`);
  expect(currentVolumeName(vm(), disks, undefined)).toBe(`${first}-2`);
  expect(currentVolumeName(vm(), disks.slice(1), undefined)).toBe(`${first}-3`);
  expect(currentVolumeName(vm(), [], undefined)).toBe(first);
});

test('a DataVolume of another namespace is ignored, even if it names the machine as its owner', () => {
  const owner = { apiVersion: 'pelotech.ot/v1alpha1', kind: 'VirtualMachine', name: 'demo', uid: 'u-1' };
  const keysIn = (namespace: string) =>
    ownerKeys({
      metadata: { namespace, name: first, ownerReferences: [{ ...owner, controller: true }] },
    });
  expect(keysIn('work')).toEqual([ownerKey('work', 'u-1')]);
  expect(keysIn('other')).not.toContain(ownerKey('work', 'u-1'));
});
