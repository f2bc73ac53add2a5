import { fileURLToPath } from 'node:url';
import { type Cluster, createNode, field, shapeOf, type Vcsim } from '@vmwright/testbed';
import type { VcenterClient } from '@vmwright/vsphere';
import { expect } from 'vitest';

/* The tutorial that GPUInfo is based on. Its nodes are machines of a vCenter. */

/** The manifest of the tutorial. */
const SAMPLE = fileURLToPath(new URL('../../../config/samples/gpuinfo.yaml', import.meta.url));

/** Machine and host of each node in vcsim. The nodes with GPUs are on the first two hosts. */
export const WORKERS = {
  'worker-a': { machine: 'DC0_C0_RP0_VM0', host: 'DC0_C0_H0', cpuDemandMhz: 87 },
  'worker-b': { machine: 'DC0_C0_RP0_VM1', host: 'DC0_C0_H1', cpuDemandMhz: 500 },
  'worker-c': { machine: 'DC0_C0_RP0_VM2', host: 'DC0_C0_H2', cpuDemandMhz: 10 },
} as const;

/** Adds GPUs to the first two hosts in vcsim, and places each machine on its host. */
export async function placeMachines({ control }: Vcsim): Promise<void> {
  await control.host(WORKERS['worker-a'].host, { gpus: 1 });
  await control.host(WORKERS['worker-b'].host, { gpus: 1, gpuModel: 'NVIDIA H100' });
  for (const { machine, host, cpuDemandMhz } of Object.values(WORKERS))
    await control.vm(machine, { host, cpuDemandMhz, guestMemoryMb: 327 });
}

/** Creates the nodes, each with the UUID of its machine as provider ID. kwok must run. */
export async function createWorkers(cluster: Cluster, vcenter: VcenterClient): Promise<void> {
  const machines = await vcenter.list('VirtualMachine', ['name', 'config.uuid']);
  for (const [node, { machine }] of Object.entries(WORKERS)) {
    await createNode(cluster, node);
    const uuid = machines.find(({ properties }) => properties.name === machine)?.properties['config.uuid'];
    await cluster.api.merge(`/api/v1/nodes/${node}`, { spec: { providerID: `vsphere://${uuid}` } });
  }
}

/** Runs the commands of the tutorial: api-resources, create, get, delete. */
export async function playGpuInfoTutorial(cluster: Cluster): Promise<void> {
  const kubectl = async (line: string) => (await cluster.kubectl(line.split(' '))).stdout;
  const table = async (line: string) => (await kubectl(line)).trimEnd().split('\n').map(shapeOf);
  expect(await table('api-resources --api-group=topology.corinternal.com')).toEqual(
    [
      'NAME SHORTNAMES APIVERSION NAMESPACED KIND',
      'gpuinfoes gpu topology.corinternal.com/v1 true GPUInfo',
    ].map(shapeOf),
  );
  expect(await kubectl(`create -f ${SAMPLE}`)).toBe(
    'gpuinfo.topology.corinternal.com/gpuinfo-sample created\n',
  );
  const path = '/apis/topology.corinternal.com/v1/namespaces/default/gpuinfoes/gpuinfo-sample';
  const answered = await cluster.waitFor(path, (info) => field(info, 'status', 'phase') === 'Reserved');
  expect(answered.status).toMatchObject({
    availableAcceleratorTime: 8_760,
    nodeCPUUsage: 87,
    nodeMemoryUsage: 327,
    suitableHostName: 'DC0_C0_H0',
    suitableNodeName: 'worker-a',
  });
  for (const name of ['gpuinfo', 'gpu'])
    expect(await table(`get ${name}`)).toEqual(
      [
        'NAME DESIRED ACCESS TIME (HRS) GPU REQUIRED NODE HOST AVAILABLE',
        'gpuinfo-sample 100 true worker-a DC0_C0_H0 8760',
      ].map(shapeOf),
    );
  expect(await kubectl('get gpu gpuinfo-sample -o yaml')).toContain('  suitableNodeName: worker-a\n');
  expect((await kubectl('delete gpuinfo gpuinfo-sample')).trim()).toMatch(
    /^gpuinfo\.topology\.corinternal\.com "gpuinfo-sample" deleted/,
  );
}
