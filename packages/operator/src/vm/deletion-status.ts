import { generationChanged, type Manager, NotFoundError } from '@vmwright/runtime';
import { VM } from './resource.ts';
import { deleting } from './status.ts';

/**
 * Says in the status of each VM that is being deleted that it is, without asking the cloud.
 *
 * A controller of its own: every worker of the one that deletes machines may be waiting for a cloud that hangs, and
 * `kubectl delete` would hang without a word. Both write on condition that the object has not changed, so neither
 * overwrites the other.
 * @param finalizer of the controller that deletes machines: without it, the machine is gone
 */
export function announceDeletion(manager: Manager, finalizer: string): void {
  manager.control({
    name: 'vm-deletion-status',
    for: VM,
    predicate: generationChanged,
    reconcilesDeleting: true,
    reconcile: async (vm, { setStatus, now }) => {
      const { deletionTimestamp, finalizers = [] } = vm.metadata;
      const { opStatus } = vm.status ?? {};
      if (deletionTimestamp === undefined || !finalizers.includes(finalizer)) return;
      if (opStatus === 'Deleting' || opStatus === 'Deleted') return;
      try {
        await setStatus(vm, deleting(vm, now(), 'Deleting the machine'));
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error; // gone is what was wanted
      }
    },
  });
}
