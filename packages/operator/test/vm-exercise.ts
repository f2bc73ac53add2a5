import type { CloudClient } from '@vmwright/cloud';
import { type Cloud, type Cluster, condition, field, type KubeObject } from '@vmwright/testbed';
import { expect } from 'vitest';
import { VMS } from './with-cloud.ts';

/* The steps of the exercise that VM is based on. */

/** Manifest of the exercise, verbatim, including its status. */
const MANIFEST = `apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata:
    name: sample
spec:
    vmname: vmsample # any name
status:
    vmId: XXXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXXX #uuid
    cpuUtilization: 50 #0-100
`;

const status = (vm: KubeObject, name: string) => field(vm, 'status', name);

/** Creates the VM, and checks that it gets a machine and keeps reporting its CPU usage. @returns the machine's id */
export async function createSample(cluster: Cluster, client: CloudClient): Promise<string> {
  await cluster.kubectl(['apply', '-f', '-'], { input: MANIFEST });
  const vm = await cluster.waitFor(
    `${VMS}/sample`,
    (each) => status(each, 'opStatus') === 'Running' && condition(each, 'Ready') === 'True',
  );
  const vmId = String(status(vm, 'vmId'));
  expect(await client.get(vmId)).toMatchObject({ id: vmId, name: 'vmsample', state: 'running' });
  const seen = new Set<unknown>();
  const later = await cluster.waitFor(`${VMS}/sample`, (each) => {
    const cpu = status(each, 'cpuUtilization');
    if (cpu !== undefined) seen.add(cpu); // undefined while the cloud does not answer
    return seen.size >= 4;
  });
  for (const cpu of seen)
    expect(cpu).toSatisfy((value) => Number.isInteger(value) && value >= 0 && value <= 100);
  expect(status(later, 'vmId')).toBe(vmId);
  return vmId;
}

/** Deletes the VM, and checks that the cloud has deleted the machine before the object disappears. */
export async function deleteSample(cluster: Cluster, cloud: Cloud, vmId: string): Promise<void> {
  await cluster.kubectl(['delete', '--wait=false', 'vms.samplecontroller.k8s.io', 'sample']);
  await cluster.waitForGone(`${VMS}/sample`);
  const seenGone = Date.now();
  const deleted = (await cloud.audit()).find(({ event, id }) => event === 'deleted' && id === vmId);
  expect(Date.parse(deleted?.time ?? '')).toBeLessThanOrEqual(seenGone);
}
