import type { Manager } from '@vmwright/runtime';
import { controlVirtualMachines } from '../virtualmachine/controller.ts';
import { controlVmDiskImages, type ImageControllerOptions } from '../vmdiskimage/controller.ts';
import { CDI_LABEL, PersistentVolumeClaim } from './kinds.ts';

/**
 * Adds the controllers of VirtualMachine and VMDiskImage. Both use one cache of the PersistentVolumeClaims of
 * DataVolumes.
 */
export function controlKubevirt(manager: Manager, options: ImageControllerOptions): void {
  manager.caches.get(PersistentVolumeClaim, { labelSelector: `app=${CDI_LABEL.app}` });
  controlVmDiskImages(manager, options);
  controlVirtualMachines(manager, options);
}
