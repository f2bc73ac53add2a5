import { expect, test } from 'vitest';
import type { HostFacts, HostGpu, MachineFacts } from '../vcenter/compute-facts.ts';
import type { DeviceGpus } from './devices.ts';
import { gpusOf } from './gpus.ts';
import type { Node, Quantities } from './kinds.ts';

const node = (allocatable: Quantities, capacity: Quantities = allocatable, labels = {}): Node => ({
  metadata: { name: 'n', labels },
  status: { allocatable, capacity },
});
const devices: DeviceGpus = {
  deviceClass: 'gpu.nvidia.com',
  models: ['dra'],
  total: 3,
  occupiedBy: () => [],
};
const machine = (gpus: MachineFacts['gpus']): MachineFacts => ({
  id: 'v/vm-1',
  name: 'vm',
  uuid: 'u',
  instanceUuid: 'i',
  hostId: 'v/host-1',
  isPoweredOn: true,
  gpus,
  cpuDemandMhz: 0,
  memoryUsageMb: 0,
});
const gpu = (model: string): HostGpu => ({
  id: '0000:3b:00.0',
  model,
  vendor: 'NVIDIA',
  mode: 'vgpu',
  isInUse: true,
});
const host = (gpus: HostFacts['gpus']): HostFacts => ({
  id: 'v/host-1',
  name: 'esx',
  isConnected: true,
  isInMaintenance: false,
  gpus,
  maintenance: [],
  warnings: [],
});
const attached = machine([{ model: 'grid', mode: 'vgpu' }]);
const none = machine([]);
const withGpus = host([gpu('A100'), gpu('A100')]);

test.each<[string, Parameters<typeof gpusOf>, object | undefined]>([
  [
    'those of an extended resource, whatever else reports GPUs',
    [node({ 'nvidia.com/gpu': '8' }), devices, attached, withGpus],
    { origin: 'resource', pool: 'node/n', total: 8, resource: 'nvidia.com/gpu' },
  ],
  [
    'those of a DRA driver rather than those of the VM and the host',
    [node({}), devices, attached, withGpus],
    { origin: 'devices', pool: 'node/n', total: 3, deviceClass: 'gpu.nvidia.com', models: ['dra'] },
  ],
  [
    'those of the VM rather than those of the host',
    [node({}), undefined, attached, withGpus],
    { origin: 'machine', pool: 'machine/v/vm-1', total: 1, models: ['grid'] },
  ],
  [
    'those of the host if nothing else reports GPUs',
    [node({}), undefined, none, withGpus],
    { origin: 'host', pool: 'host/v/host-1', total: 2, models: ['A100'] },
  ],
  ['none if no source reports any', [node({}), undefined, none, host([])], undefined],
  [
    'none if the device plugin was removed',
    [node({ 'nvidia.com/gpu': '0' }), undefined, undefined, undefined],
    undefined,
  ],
  [
    'not usable if all devices are unhealthy',
    [node({ 'nvidia.com/gpu': '0' }, { 'nvidia.com/gpu': '4' }), undefined, undefined, withGpus],
    { origin: 'resource', total: 0, resource: 'nvidia.com/gpu' },
  ],
  [
    'healthy partitions rather than unhealthy whole GPUs',
    [
      node({ 'nvidia.com/gpu': '0', 'nvidia.com/mig-1g.5gb': '7' }, { 'nvidia.com/gpu': '1' }),
      undefined,
      undefined,
      undefined,
    ],
    { total: 7, resource: 'nvidia.com/mig-1g.5gb' },
  ],
  [
    'whole GPUs rather than partitions',
    [node({ 'nvidia.com/mig-1g.5gb': '7', 'nvidia.com/gpu': '1' }), undefined, undefined, undefined],
    { total: 1, resource: 'nvidia.com/gpu' },
  ],
  [
    'of the model that the node labels specify',
    [
      node({ 'nvidia.com/gpu': '1' }, {}, { 'nvidia.com/gpu.product': 'Tesla-T4' }),
      undefined,
      undefined,
      undefined,
    ],
    { models: ['Tesla-T4'] },
  ],
])('the GPUs of a node are %s', (_title, sources, expected) => {
  const found = gpusOf(...sources);
  if (expected === undefined) expect(found).toBeUndefined();
  else expect(found).toMatchObject(expected);
});
