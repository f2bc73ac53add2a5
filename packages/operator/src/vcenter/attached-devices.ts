import { isA, type Vim25 } from '@vmwright/vsphere';
import { normalizePciId, unsigned } from './pci-id.ts';

/** A PCI device or vGPU in the configuration of a machine. It need not be a GPU. */
export type AttachedDevice =
  /** A device that the configuration names by its PCI id. */
  | { readonly kind: 'fixed'; readonly id: string }
  /** A device that vCenter selects at power-on by vendor and device id (Dynamic DirectPath I/O). */
  | {
      readonly kind: 'dynamic';
      /** PCI id of the selected device; undefined while the machine is powered off. */
      readonly id: string | undefined;
      readonly allowed: readonly { readonly vendorId: number; readonly deviceId: number }[];
    }
  /** A share of a GPU, by the name of its vGPU profile, such as `grid_a100-10c`. */
  | { readonly kind: 'vgpu'; readonly profile: string };

/** Returns the PCI devices and vGPUs among the virtual devices of a machine. */
export function attachedDevices(devices: readonly Vim25['VirtualDevice'][] = []): readonly AttachedDevice[] {
  return devices.flatMap(({ backing }) => (backing === undefined ? [] : (attachedDevice(backing) ?? [])));
}

/** Returns whether a virtual device is a PCI device or vGPU of the host. */
export function isPassthrough(device: Vim25['VirtualDevice']): boolean {
  return isA(device, 'VirtualPCIPassthrough');
}

function attachedDevice(backing: Vim25['VirtualDeviceBackingInfo']): AttachedDevice | undefined {
  if (isA(backing, 'VirtualPCIPassthroughVmiopBackingInfo'))
    return { kind: 'vgpu', profile: backing.vgpu ?? '' };
  if (isA(backing, 'VirtualPCIPassthroughDynamicBackingInfo')) {
    const { assignedId, allowedDevice = [] } = backing;
    const allowed = allowedDevice.map(({ vendorId, deviceId }) => ({
      vendorId: unsigned(vendorId),
      deviceId: unsigned(deviceId),
    }));
    const isAssigned = assignedId !== undefined && assignedId !== '';
    return { kind: 'dynamic', id: isAssigned ? normalizePciId(assignedId) : undefined, allowed };
  }
  if (isA(backing, 'VirtualPCIPassthroughDeviceBackingInfo'))
    return { kind: 'fixed', id: normalizePciId(backing.id) };
  return undefined;
}
