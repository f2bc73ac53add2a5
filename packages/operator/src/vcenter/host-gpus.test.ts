import type { Vim25 } from '@vmwright/vsphere';
import { describe, expect, test } from 'vitest';
import { attachedDevices, isPassthrough } from './attached-devices.ts';
import { gpuDevices, hostGpus, isGpu, machineGpus } from './host-gpus.ts';

/** Returns a 16-bit id as vCenter sends it: as a signed number. */
function short(id: number): number {
  return new Int16Array([id])[0] ?? 0;
}

function pci(id: string, classId: number, vendorId: number, deviceId = 0x20b0): Vim25['HostPciDevice'] {
  return {
    id,
    classId: short(classId),
    vendorId: short(vendorId),
    deviceId: short(deviceId),
    bus: 0,
    slot: 0,
    function: 0,
    subVendorId: 0,
    subDeviceId: 0,
    vendorName: 'Vendor',
    deviceName: 'Device',
  };
}

function graphics(
  pciId: string,
  graphicsType: string,
  more: Partial<Vim25['HostGraphicsInfo']> = {},
): Vim25['HostGraphicsInfo'] {
  return { pciId, graphicsType, deviceName: 'NVIDIA A100', vendorName: 'NVIDIA', memorySizeInKB: 1, ...more };
}

function passthrough(id: string, passthruActive = true): Vim25['HostPciPassthruInfo'] {
  return { id, dependentDevice: id, passthruEnabled: true, passthruCapable: true, passthruActive };
}

describe('PCI devices that are GPUs', () => {
  test.each([
    ['NVIDIA 3D controller', 0x0302, 0x10de, 0x20b0, true],
    ['NVIDIA VGA controller', 0x0300, 0x10de, 0x1eb8, true],
    ['AMD accelerator', 0x1200, 0x1002, 0x740f, true],
    ['Intel GPU with a negative vendor id', 0x0380, 0x8086, 0x56c0, true],
    ['Habana accelerator', 0x1200, 0x1da3, 0x1020, true],
    ['Huawei Ascend accelerator', 0x1200, 0x19e5, 0xd802, true],
    ['ASPEED management display', 0x0300, 0x1a03, 0x2000, false],
    ['Matrox management display', 0x0300, 0x102b, 0x0536, false],
    ['AMD ES1000 management display', 0x0300, 0x1002, 0x515e, false],
    ['Huawei management display', 0x0300, 0x19e5, 0x1711, false],
    ['VMware SVGA', 0x0300, 0x15ad, 0x0405, false],
    ['audio function of a GPU', 0x0403, 0x10de, 0x10f0, false],
    ['NVSwitch', 0x0680, 0x10de, 0x1af1, false],
    ['network card', 0x0200, 0x15b3, 0x101d, false],
    ['device of a class above 0x7fff', 0xff00, 0x10de, 0x20b0, false],
  ])('whether a PCI device is a GPU: %s', (_, classId, vendorId, deviceId, expected) => {
    expect(isGpu(pci('0000:3b:00.0', classId, vendorId, deviceId))).toBe(expected);
  });
});

describe('modes of GPUs', () => {
  test.each([
    ['passthrough if passthrough is active', 'basic', true, 'passthrough'],
    ['passthrough for direct graphics', 'direct', false, 'passthrough'],
    ['vGPU for shared direct graphics', 'sharedDirect', false, 'vgpu'],
    ['graphics for shared graphics', 'shared', false, 'graphics'],
    ['graphics for basic graphics', 'basic', false, 'graphics'],
  ])('the mode of a GPU is %s', (_, type, isActive, mode) => {
    const gpus = gpuDevices({
      'hardware.pciDevice': [pci('0000:3b:00.0', 0x0302, 0x10de)],
      'config.graphicsInfo': [graphics('3b:00.0', type)],
      'config.pciPassthruInfo': [passthrough('0000:3b:00.0', isActive)],
    });
    expect(gpus).toMatchObject([{ id: '0000:3b:00.0', model: 'NVIDIA A100', vendor: 'NVIDIA', mode }]);
  });
});

test('a GPU without graphics information has the name of its PCI device', () => {
  const gpus = gpuDevices({
    'hardware.pciDevice': [
      pci('0000:d8:00.0', 0x0302, 0x10de),
      pci('0000:3b:00.0', 0x1200, 0x1002),
      pci('0000:00:1f.0', 0x0601, 0x8086),
    ],
  });
  expect(gpus.map(({ id, model, vendor, mode }) => [id, model, vendor, mode])).toEqual([
    ['0000:3b:00.0', 'Device', 'Vendor', 'graphics'],
    ['0000:d8:00.0', 'Device', 'Vendor', 'graphics'],
  ]);
});

test('the virtual functions of a GPU with SR-IOV do not count as GPUs', () => {
  const sriov = {
    ...passthrough('0000:3b:00.0', false),
    _type: 'HostSriovInfo',
    sriovEnabled: true,
    sriovCapable: true,
    sriovActive: true,
    numVirtualFunctionRequested: 16,
    numVirtualFunction: 16,
    maxVirtualFunctionSupported: 16,
  };
  const ids = ['0000:3b:00.0', '0000:3b:00.4', '0000:3b:01.0', '0000:af:00.0'];
  const gpus = gpuDevices({
    'hardware.pciDevice': ids.map((id) => pci(id, 0x0302, 0x10de)),
    'config.pciPassthruInfo': [sriov],
  });
  expect(gpus.map(({ id }) => id)).toEqual(['0000:3b:00.0', '0000:af:00.0']);
});

const PASSTHROUGH_HOST = {
  'hardware.pciDevice': ['0000:3b:00.0', '0000:af:00.0'].map((id) => pci(id, 0x0302, 0x10de)),
  'config.graphicsInfo': [],
  'config.pciPassthruInfo': ['0000:3b:00.0', '0000:af:00.0'].map((id) => passthrough(id)),
};
const VGPU_HOST = {
  'hardware.pciDevice': ['0000:3b:00.0', '0000:af:00.0'].map((id) => pci(id, 0x0302, 0x10de)),
  'config.graphicsInfo': [
    graphics('0000:3b:00.0', 'sharedDirect', { deviceName: 'NVIDIA T4' }),
    graphics('0000:af:00.0', 'sharedDirect', { deviceName: 'NVIDIA A100-PCIE-40GB' }),
  ],
};

function device(backing: object): Vim25['VirtualDevice'] {
  return { _type: 'VirtualPCIPassthrough', key: 13_000, backing };
}

const FIXED = (id: string) =>
  device({
    _type: 'VirtualPCIPassthroughDeviceBackingInfo',
    deviceName: '',
    id,
    deviceId: '20b0',
    systemId: 'BYPASS',
    vendorId: 0x10de,
  });
const DYNAMIC = (assignedId?: string) =>
  device({
    _type: 'VirtualPCIPassthroughDynamicBackingInfo',
    deviceName: '',
    allowedDevice: [{ vendorId: 0x10de, deviceId: 0x20b0 }],
    ...(assignedId !== undefined && { assignedId }),
  });
const VGPU = (vgpu: string) => device({ _type: 'VirtualPCIPassthroughVmiopBackingInfo', vgpu });

function usedOn(host: Parameters<typeof gpuDevices>[0], ...machines: Vim25['VirtualDevice'][][]): string[] {
  const running = machines.map((devices, index) => ({
    machine: `vm-${index}`,
    devices: attachedDevices(devices),
  }));
  return hostGpus(gpuDevices(host), running).flatMap(({ id, isInUse }) => (isInUse ? [id] : []));
}

describe('GPUs in use', () => {
  test('a GPU is in use if a passthrough device of a machine has the PCI id of the GPU', () => {
    expect(usedOn(PASSTHROUGH_HOST)).toEqual([]);
    expect(usedOn(PASSTHROUGH_HOST, [FIXED('0000:AF:00.0')])).toEqual(['0000:af:00.0']);
    expect(usedOn(PASSTHROUGH_HOST, [FIXED('00000:175:00.0')])).toEqual(['0000:af:00.0']);
    expect(usedOn(PASSTHROUGH_HOST, [FIXED('0000:01:00.0')])).toEqual([]);
  });

  test('a GPU is in use if vCenter assigned it to a machine at power-on', () => {
    expect(usedOn(PASSTHROUGH_HOST, [DYNAMIC('0000:3b:00.0')])).toEqual(['0000:3b:00.0']);
    expect(usedOn(PASSTHROUGH_HOST, [DYNAMIC()])).toEqual([]);
  });

  test('a GPU is in use if its graphics information lists a running machine', () => {
    const vm = ['vm-0', 'vm-9'].map((value) => ({ type: 'VirtualMachine', value }));
    const host = {
      ...VGPU_HOST,
      'config.graphicsInfo': [
        graphics('0000:3b:00.0', 'sharedDirect', { vm: vm.slice(1) }),
        graphics('0000:af:00.0', 'sharedDirect', { vm }),
      ],
    };
    expect(usedOn(host, [VGPU('grid_a100-10c')])).toEqual(['0000:af:00.0']);
    expect(usedOn(host)).toEqual([]);
  });

  test('for each vGPU of a machine, one GPU counts as in use, preferably a GPU of the model in the vGPU profile', () => {
    expect(usedOn(VGPU_HOST, [VGPU('grid_a100-10c')])).toEqual(['0000:af:00.0']);
    expect(usedOn(VGPU_HOST, [VGPU('grid_a100-10c')], [VGPU('grid_a100-10c')])).toHaveLength(2);
    expect(usedOn(VGPU_HOST, [VGPU('grid_t4-4c')], [], [VGPU('grid_t4-4c')], [VGPU('x')])).toHaveLength(2);
    expect(usedOn(PASSTHROUGH_HOST, [VGPU('grid_a100-10c')])).toEqual([]);
  });
});

test('all GPUs count as in use while the devices of a running machine are unknown', () => {
  const gpus = hostGpus(gpuDevices(PASSTHROUGH_HOST), [{ machine: 'vm-0', devices: undefined }]);
  expect(gpus.map(({ isInUse }) => isInUse)).toEqual([true, true]);
});

test('the GPUs of a machine are its passthrough GPUs and vGPUs, without other PCI devices', () => {
  const gpus = gpuDevices(PASSTHROUGH_HOST);
  const devices = [
    FIXED('0000:3b:00.0'),
    FIXED('0000:01:00.0'),
    DYNAMIC(),
    VGPU('grid_a100-10c'),
    { _type: 'VirtualE1000e', key: 4_000 },
    { _type: 'VirtualPCIPassthrough', key: 13_009 },
  ];
  expect(machineGpus(gpus, attachedDevices(devices))).toEqual([
    { model: 'Device', mode: 'passthrough' },
    { model: 'Device', mode: 'passthrough' },
    { model: 'grid_a100-10c', mode: 'vgpu' },
  ]);
  expect(devices.filter(isPassthrough)).toHaveLength(5);
});
