import type { ControllerPermissions, Manager, World } from '@vmwright/runtime';
import type { KubevirtSettings } from '../settings/kubevirt.ts';
import { VirtualMachine } from './resource.ts';

export const FINALIZER = 'vmwright.dev/virtualmachine';

export interface VirtualMachineControllerOptions
  extends Pick<KubevirtSettings, 'imageNamespaces' | 'concurrency'> {
  readonly world: World;
}

/** Permissions of the controller, for the RBAC that the operator ships. */
export const VIRTUAL_MACHINE_PERMISSIONS: ControllerPermissions = {
  for: VirtualMachine,
  finalizer: { name: FINALIZER },
};

/** Adds the controller of VirtualMachines to the manager. */
export function controlVirtualMachines(manager: Manager, options: VirtualMachineControllerOptions): void {
  manager.control({
    for: VirtualMachine,
    concurrency: options.concurrency,
    finalizer: { name: FINALIZER, finalize: async () => undefined },
    reconcile: async () => undefined,
  });
}
