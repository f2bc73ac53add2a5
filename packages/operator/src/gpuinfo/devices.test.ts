import { expect, test } from 'vitest';
import { deviceGpusOf, isGpuDriver } from './devices.ts';
import type { Device, ResourceSlice } from './kinds.ts';

const DRIVER = 'gpu.nvidia.com';

function slice(
  devices: readonly Device[],
  pool: Partial<NonNullable<ResourceSlice['spec']>['pool']> = {},
  driver = DRIVER,
): ResourceSlice {
  return {
    metadata: { name: `${driver}-${JSON.stringify(pool)}` },
    spec: {
      driver,
      nodeName: 'n',
      pool: { name: 'n', generation: 1, resourceSliceCount: 1, ...pool },
      devices,
    },
  };
}

function device(name: string, attributes: Readonly<Record<string, string>> = {}): Device {
  return {
    name,
    attributes: Object.fromEntries(Object.entries(attributes).map(([key, string]) => [key, { string }])),
  };
}

test.each([
  ['gpu.nvidia.com', true],
  ['gpu.amd.com', true],
  ['gaudi.intel.com', true],
  ['compute-domain.nvidia.com', false],
  ['dra.net', false],
  ['dra.cpu', false],
])('whether %s is a GPU driver: %s', (driver, expected) => {
  expect(isGpuDriver(driver)).toBe(expected);
});

test('all devices of a node are counted, and a model that several devices share is listed once', () => {
  const a100 = { type: 'gpu', productName: 'NVIDIA A100' };
  const gpus = deviceGpusOf([slice([device('gpu-0', a100), device('gpu-1', a100)])]);
  expect(gpus).toMatchObject({ deviceClass: DRIVER, models: ['NVIDIA A100'], total: 2 });
});

test('the model of a device is read from attributes with qualified names and from the attribute "model"', () => {
  expect(deviceGpusOf([slice([device('0', { 'gpu.nvidia.com/productName': 'L4' })])])?.models).toEqual([
    'L4',
  ]);
  expect(deviceGpusOf([slice([device('0', { model: 'LATEST-GPU-MODEL' })])])?.models).toEqual([
    'LATEST-GPU-MODEL',
  ]);
});

test('a GPU that is published as several devices counts once, and is occupied if any of these devices is allocated', () => {
  const gpus = deviceGpusOf([
    slice([
      device('gpu-0', { type: 'gpu', uuid: 'GPU-0', productName: 'A100' }),
      device('gpu-0-mig-1', { type: 'mig', uuid: 'MIG-1', parentUUID: 'GPU-0' }),
      device('gpu-0-vfio', { type: 'vfio', uuid: 'GPU-0' }),
      device('gpu-1', { type: 'gpu', uuid: 'GPU-1', productName: 'A100' }),
    ]),
  ]);
  expect(gpus?.total).toBe(2);
  const of = (name: string) => gpus?.occupiedBy({ driver: DRIVER, pool: 'n', device: name });
  expect([of('gpu-0'), of('gpu-0-mig-1'), of('gpu-0-vfio'), of('gpu-1'), of('other')]).toEqual([
    ['n/gpu-0'],
    ['n/gpu-0'],
    ['n/gpu-0'],
    ['n/gpu-1'],
    [],
  ]);
});

test('partitions are counted as GPUs if the driver publishes no whole GPUs', () => {
  const mig = { type: 'mig', productName: 'A100 MIG', parentUUID: 'GPU-0' };
  expect(deviceGpusOf([slice([device('mig-0', mig), device('mig-1', mig)])])?.total).toBe(2);
});

test('a node that has only tainted devices has no usable GPU', () => {
  const tainted = { ...device('gpu-0'), taints: [{ key: 'broken', effect: 'NoExecute' }] };
  expect(deviceGpusOf([slice([tainted])])).toMatchObject({ total: 0 });
});

test('only devices of the newest complete pool generation are counted; if no generation is complete, those of the newest one', () => {
  const old = slice([device('a'), device('b')], { generation: 1 });
  const half = slice([device('c')], { generation: 2, resourceSliceCount: 2 });
  const rest = slice([device('d'), device('e')], { generation: 2, resourceSliceCount: 2 });
  expect(deviceGpusOf([old, half])?.total).toBe(2);
  expect(deviceGpusOf([old, half, rest])?.total).toBe(3);
  expect(deviceGpusOf([half])?.total).toBe(1);
});

test('an allocated device occupies no GPU of the node if the allocation has administrative access, or if the device belongs to another driver or pool', () => {
  const gpus = deviceGpusOf([slice([device('gpu-0')])]);
  const allocated = { driver: DRIVER, pool: 'n', device: 'gpu-0' };
  expect(gpus?.occupiedBy({ ...allocated, adminAccess: true })).toEqual([]);
  expect(gpus?.occupiedBy({ ...allocated, driver: 'gpu.amd.com' })).toEqual([]);
  expect(gpus?.occupiedBy({ ...allocated, pool: 'other' })).toEqual([]);
});

test('a node without devices of a GPU driver has no GPUs', () => {
  expect(deviceGpusOf([])).toBeUndefined();
  expect(deviceGpusOf([slice([])])).toBeUndefined();
  expect(deviceGpusOf([slice([device('nic')], {}, 'dra.net')])).toBeUndefined();
});
