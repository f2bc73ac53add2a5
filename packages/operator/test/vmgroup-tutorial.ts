import { type Cluster, shapeOf } from '@vmwright/testbed';
import type { VcenterClient } from '@vmwright/vsphere';
import { expect } from 'vitest';
import { foldersOf, machinesIn } from './vcenter-inventory.ts';

/** Manifest of the tutorial that VmGroup is based on. */
const MANIFEST = `apiVersion: vm.codeconnect.vmworld.com/v1alpha1
kind: VmGroup
metadata:
  name: vmgroup-sample
  namespace: myoperator-vms
spec:
  cpu: 2
  memory: 1
  replicas: 3
  template: vm-operator-template
`;
const FOLDER = 'myoperator-vms-vmgroup-sample';

/** Runs the commands of the tutorial: api-resources, create, get, scale to 5 and to 2, delete. */
export async function playVmGroupTutorial(cluster: Cluster, vcenter: VcenterClient): Promise<void> {
  const kubectl = async (line: string) =>
    (await cluster.kubectl(line.split(' '))).stdout.trimEnd().split('\n');
  const rows = async (...expected: readonly string[]) =>
    expect
      .poll(async () => (await kubectl('get vmgroups -n myoperator-vms')).map(shapeOf), { timeout: 60_000 })
      .toEqual(['NAME PHASE CURRENT DESIRED CPU MEMORY TEMPLATE LAST_MESSAGE', ...expected].map(shapeOf));
  expect((await kubectl('api-resources --api-group=vm.codeconnect.vmworld.com')).map(shapeOf)).toEqual([
    'NAME SHORTNAMES APIVERSION NAMESPACED KIND',
    'vmgroups vg vm.codeconnect.vmworld.com/v1beta1 true VmGroup',
  ]);
  await kubectl('create namespace myoperator-vms');
  await cluster.apply(MANIFEST);
  const row = (count: number) =>
    `vmgroup-sample RUNNING ${count} ${count} 2 1 vm-operator-template successfully reconciled VmGroup`;
  await rows(row(3));
  const scale = (count: number) =>
    kubectl(`scale --replicas=${count} vmgroup vmgroup-sample -n myoperator-vms`);
  expect(await scale(5)).toEqual(['vmgroup.vm.codeconnect.vmworld.com/vmgroup-sample scaled']);
  await rows(row(5));
  const machines = await machinesIn(vcenter, FOLDER);
  expect(machines.map(({ power, cpus, memoryMb }) => ({ power, cpus, memoryMb }))).toEqual(
    Array(5).fill({ power: 'poweredOn', cpus: 2, memoryMb: 1_024 }),
  );
  await scale(2);
  await rows(row(2));
  expect(await machinesIn(vcenter, FOLDER)).toHaveLength(2);
  await kubectl('delete vg --all -A');
  expect(await machinesIn(vcenter)).toEqual([]);
  expect(await foldersOf(vcenter)).toEqual([]);
}
