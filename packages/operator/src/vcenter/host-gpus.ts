import { isA, type Properties, type Vim25 } from '@vmwright/vsphere';
import type { AttachedDevice } from './attached-devices.ts';
import type { HostGpu, MachineGpu } from './compute-facts.ts';
import { normalizePciId, unsigned } from './pci-id.ts';

/** PCI classes of GPUs: VGA, 3D, other display controllers, and processing accelerators. */
const GPU_CLASSES: ReadonlySet<number> = new Set([0x0300, 0x0302, 0x0380, 0x1200]);
/** Vendors of display controllers that are not GPUs: ASPEED and Matrox (server management), VMware (SVGA). */
const DISPLAY_VENDORS: ReadonlySet<number> = new Set([0x1a03, 0x102b, 0x15ad]);
/**
 * Server management display controllers of vendors that also make GPUs, by vendor and device: AMD ES1000, Huawei
 * Hi171x.
 */
const DISPLAY_DEVICES: ReadonlySet<string> = new Set(['1002:515e', '19e5:1711']);

/** A GPU of a host, without the information whether it is in use. */
export interface GpuDevice extends Omit<HostGpu, 'isInUse'> {
  readonly vendorId: number;
  readonly deviceId: number;
  /** References of the machines that `graphicsInfo` lists as users of the GPU. */
  readonly users: readonly string[];
}

/** Devices of a machine that is powered on. */
export interface MachineDevices {
  /** Reference of the machine. */
  readonly machine: string;
  /** Attached devices; undefined until vCenter has reported them. */
  readonly devices: readonly AttachedDevice[] | undefined;
}

type HostProperties = Partial<
  Pick<Properties['HostSystem'], 'config.graphicsInfo' | 'config.pciPassthruInfo' | 'hardware.pciDevice'>
>;

/**
 * Returns whether a PCI device of a host is a GPU. The display controller of a server's management controller (BMC) is
 * not.
 */
export function isGpu({ classId, vendorId, deviceId }: Vim25['HostPciDevice']): boolean {
  const vendor = unsigned(vendorId);
  const device = `${vendor.toString(16).padStart(4, '0')}:${unsigned(deviceId).toString(16).padStart(4, '0')}`;
  return GPU_CLASSES.has(unsigned(classId)) && !DISPLAY_VENDORS.has(vendor) && !DISPLAY_DEVICES.has(device);
}

/** Returns the GPUs of a host, sorted by PCI id. */
export function gpuDevices(host: HostProperties): readonly GpuDevice[] {
  const graphics = new Map(
    (host['config.graphicsInfo'] ?? []).map((info) => [normalizePciId(info.pciId), info]),
  );
  const passthrough = new Map(
    (host['config.pciPassthruInfo'] ?? []).map((info) => [normalizePciId(info.id), info]),
  );
  const devices = (host['hardware.pciDevice'] ?? [])
    .filter(isGpu)
    .map((device) => ({ ...device, id: normalizePciId(device.id) }));
  // The virtual functions of a GPU with active SR-IOV are listed as devices of the same bus. They do not count as GPUs.
  const shared = devices.filter(({ id }) => hasVirtualFunctions(passthrough.get(id)));
  const isFunction = ({ id }: { readonly id: string }) =>
    shared.some((gpu) => gpu.id !== id && busOf(gpu.id) === busOf(id));
  return devices
    .filter((device) => !isFunction(device))
    .map((device) => {
      const { id } = device;
      const info = graphics.get(id);
      return {
        id,
        model: info?.deviceName || device.deviceName,
        vendor: info?.vendorName || device.vendorName,
        mode: modeOf(info, passthrough.get(id)),
        vendorId: unsigned(device.vendorId),
        deviceId: unsigned(device.deviceId),
        users: (info?.vm ?? []).map(({ value }) => value),
      };
    })
    .toSorted((one, other) => (one.id < other.id ? -1 : 1));
}

function hasVirtualFunctions(info: Vim25['HostPciPassthruInfo'] | undefined): boolean {
  return info !== undefined && isA(info, 'HostSriovInfo') && info.sriovActive && info.numVirtualFunction > 0;
}

function busOf(id: string): string {
  return id.slice(0, id.lastIndexOf(':'));
}

function modeOf(
  graphics: Vim25['HostGraphicsInfo'] | undefined,
  passthrough: Vim25['HostPciPassthruInfo'] | undefined,
): HostGpu['mode'] {
  if (passthrough?.passthruActive) return 'passthrough';
  switch (graphics?.graphicsType) {
    case 'direct':
      return 'passthrough';
    case 'sharedDirect':
      return 'vgpu';
    default:
      return 'graphics';
  }
}

/**
 * Returns the GPUs of a host and whether each is in use.
 *
 * A GPU is in use if it is attached to a powered-on machine by its PCI id, or if `graphicsInfo` lists a powered-on
 * machine as its user.
 *
 * If `graphicsInfo` does not list a machine with vGPUs, vCenter does not report which GPUs serve them. Each of these
 * vGPUs then makes one free GPU count as in use, because by default ESXi places each machine on the least used GPU. A
 * GPU of the model in the vGPU profile is preferred.
 *
 * If the devices of a machine are unknown, all GPUs count as in use, so that no used GPU is reported as free.
 *
 * @param machines machines on the host that are powered on
 */
export function hostGpus(
  gpus: readonly GpuDevice[],
  machines: readonly MachineDevices[],
): readonly HostGpu[] {
  const running = new Set(machines.map(({ machine }) => machine));
  const used = new Set(
    gpus.filter(({ users }) => users.some((user) => running.has(user))).map(({ id }) => id),
  );
  const listed = new Set(gpus.flatMap(({ users }) => users));
  for (const { machine, devices } of machines)
    for (const device of devices ?? []) {
      if (device.kind !== 'vgpu') {
        if (device.id !== undefined) used.add(device.id);
      } else if (!listed.has(machine)) {
        const free = freeGpuFor(device.profile, gpus, used);
        if (free !== undefined) used.add(free.id);
      }
    }
  const isUnknown = machines.some(({ devices }) => devices === undefined);
  return gpus.map(({ id, model, vendor, mode }) => ({
    id,
    model,
    vendor,
    mode,
    isInUse: isUnknown || used.has(id),
  }));
}

/**
 * Returns a free GPU for a vGPU, if possible of the model in the profile's name: the profile `grid_a100-10c` belongs to
 * an A100.
 */
function freeGpuFor(
  profile: string,
  gpus: readonly GpuDevice[],
  used: ReadonlySet<string>,
): GpuDevice | undefined {
  const free = gpus.filter(({ id, mode }) => mode === 'vgpu' && !used.has(id));
  const model = /^[a-z]+_([a-z0-9]+)/i.exec(profile)?.[1]?.toLowerCase();
  return free.find((gpu) => model !== undefined && gpu.model.toLowerCase().includes(model)) ?? free[0];
}

/**
 * Returns the GPUs that are attached to a machine, without other PCI devices such as network cards.
 * @param gpus GPUs of the machine's host
 */
export function machineGpus(
  gpus: readonly GpuDevice[],
  devices: readonly AttachedDevice[],
): readonly MachineGpu[] {
  return devices.flatMap((device): readonly MachineGpu[] => {
    if (device.kind === 'vgpu') return [{ model: device.profile, mode: 'vgpu' }];
    const gpu = gpus.find((each) => isServedBy(device, each));
    return gpu === undefined ? [] : [{ model: gpu.model, mode: 'passthrough' }];
  });
}

function isServedBy(device: Exclude<AttachedDevice, { kind: 'vgpu' }>, gpu: GpuDevice): boolean {
  if (device.id !== undefined) return device.id === gpu.id;
  return (
    device.kind === 'dynamic' &&
    device.allowed.some(({ vendorId, deviceId }) => vendorId === gpu.vendorId && deviceId === gpu.deviceId)
  );
}
