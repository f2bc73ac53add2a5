import { GPUInfo, VirtualMachine, VM, VMDiskImage, VmGroup } from '@vmwright/operator';
import type { Client } from '@vmwright/runtime';
import { createNode } from '@vmwright/testbed';
import type { Installed } from '../../packages/operator/test/installed.ts';
import { createMachine, imageSpec } from '../../packages/operator/test/kubevirt-world.ts';
import { TEMPLATE } from '../../packages/operator/test/with-vcenter.ts';
import { createAll, NAMESPACE, untilAll } from '../runtime/objects.ts';

/**
 * Number of objects of each kind. VirtualMachines are prepared but not started: KubeVirt would use all cores to start
 * them.
 */
export const COUNTS = { vms: 500, groups: 20, machines: 30, images: 3, infos: 200 };
const NODES = 20;

/**
 * Creates objects of all kinds and waits until all are ready; a GPUInfo only needs a phase. The cluster must have kwok.
 */
export async function createObjects(client: Client, { controlPlane: { cluster } }: Installed): Promise<void> {
  const resources = { 'nvidia.com/gpu': '8' };
  for (let i = 0; i < NODES; i++) await createNode(cluster, `gpu-${i}`, { resources });
  const metadata = (name: string) => ({ namespace: NAMESPACE, name });
  await createAll(client, VM, COUNTS.vms, (i) => ({
    metadata: metadata(`vm-${i}`),
    spec: { vmname: `vm-${i}` },
  }));
  await createAll(client, VmGroup, COUNTS.groups, (i) => ({
    metadata: metadata(`group-${i}`),
    spec: { replicas: 3, cpu: 1, memory: 1, template: TEMPLATE },
  }));
  for (let i = 0; i < COUNTS.machines; i++) {
    const image = { name: `image-${i % COUNTS.images}`, namespace: NAMESPACE };
    await createMachine(cluster, {
      name: `machine-${i}`,
      namespace: NAMESPACE,
      image,
      ignoreOnDeploy: true,
      template: imageSpec(),
    });
  }
  // Half of the requests get no node, because no node has the label that they select.
  await createAll(client, GPUInfo, COUNTS.infos, (i) => ({
    metadata: metadata(`info-${i}`),
    spec: { desAccTime: 100, gpuRequired: true, ...(i % 2 && { nodeSelector: { pool: 'none' } }) },
  }));
  await untilAll(client, VM, COUNTS.vms, (vm) => vm.status?.opStatus === 'Running');
  await untilAll(client, VmGroup, COUNTS.groups, (group) => group.status?.phase === 'RUNNING');
  await untilAll(client, VMDiskImage, COUNTS.images, (image) => image.status?.phase === 'Ready');
  await untilAll(client, VirtualMachine, COUNTS.machines, (vm) => vm.status?.phase === 'Ready');
  await untilAll(client, GPUInfo, COUNTS.infos, (info) => info.status?.phase !== undefined);
}
