import type { ControllerPermissions, Manager, World } from '@vmwright/runtime';
import type { KubevirtSettings } from '../settings/kubevirt.ts';
import { VMDiskImage } from './resource.ts';

export const FINALIZER = 'vmwright.dev/vmdiskimage';

export interface ImageControllerOptions extends KubevirtSettings {
  readonly world: World;
  /** Namespace of the operator, which contains the ConfigMap with the sync slots. */
  readonly namespace: string;
}

/** Permissions of the controller, for the RBAC that the operator ships. */
export const IMAGE_PERMISSIONS: ControllerPermissions = { for: VMDiskImage, finalizer: { name: FINALIZER } };

/** Adds the controller of VMDiskImages to the manager. */
export function controlVmDiskImages(manager: Manager, options: ImageControllerOptions): void {
  manager.control({
    for: VMDiskImage,
    concurrency: options.concurrency,
    finalizer: { name: FINALIZER, finalize: async () => undefined },
    reconcile: async () => undefined,
  });
}
