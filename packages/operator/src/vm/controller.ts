import type { CloudClient } from '@vmwright/cloud';
import {
  Availability,
  annotationsChanged,
  any,
  Channel,
  generationChanged,
  type Logger,
  type Manager,
  statusChanged,
  type World,
} from '@vmwright/runtime';
import { BACKEND } from './errors.ts';
import { type PollingOptions, pollingOf } from './polling.ts';
import { reportDeletion, VmReconciler } from './reconciler.ts';
import { Refresher } from './refresher.ts';
import { VM } from './resource.ts';
import { ServerInventory } from './server-inventory.ts';

export const FINALIZER = 'vmwright.dev/vm';

export interface VmControllerOptions extends PollingOptions {
  readonly world: World;
  readonly log: Logger;
  readonly cloud: CloudClient;
  /** Id of this cluster in the ownership labels. */
  readonly cluster: string;
  /** Maximum number of VMs that are reconciled at the same time. */
  readonly concurrency: number;
}

/**
 * Adds the VM controllers to the manager. They create and delete the machines of the private cloud.
 *
 * Guarantees:
 * - A VM has at most one machine at any time, even after crashes and lost requests. The idempotency key is derived from
 *   the VM's UID. The intent is stored, with a resourceVersion precondition, before each create.
 * - The finalizer of a VM stays until the cloud confirms that the machine is gone. If a machine is created after that,
 *   `collectVmGarbage` deletes it.
 * - If the cloud does not answer for `unknownAfterMs`, Ready of every VM becomes Unknown.
 * - A deletion is reported in the status immediately, even while the cloud does not answer.
 */
export function controlVms(manager: Manager, options: VmControllerOptions): void {
  const { world, log, cloud, cluster, refreshMs, unknownAfterMs, concurrency } = options;
  const { listTimeoutMs, everyMs } = pollingOf(options);
  const vms = manager.caches.get(VM);
  const channel = new Channel();
  const enqueueAll = () => {
    for (const key of vms.keys()) channel.enqueue(key);
  };
  const availability = new Availability({
    clock: world,
    log,
    backend: BACKEND,
    afterMs: unknownAfterMs,
    onChange: enqueueAll,
  });
  const inventory = new ServerInventory({
    world,
    cloud,
    cluster,
    availability,
    maxAgeMs: 2 * refreshMs,
    timeoutMs: listTimeoutMs,
  });
  const refresher = new Refresher({ world, log, inventory, availability, vms, everyMs });
  const onChanging = () => refresher.expectChange();
  const reconciler = new VmReconciler({ cloud, inventory, availability, cluster, onChanging });
  manager.control({
    for: VM,
    predicate: any(generationChanged, annotationsChanged, statusChanged),
    concurrency,
    backoff: { maxMs: 60_000 }, // so that VMs are retried soon after a long outage
    sources: [channel.source, refresher.source],
    reconcile: reconciler.reconcile,
    finalizer: { name: FINALIZER, finalize: reconciler.reconcileDelete },
  });
  manager.control({
    name: 'vm-deletion-status',
    for: VM,
    predicate: generationChanged,
    reconcilesDeleting: true,
    reconcile: reportDeletion(FINALIZER),
  });
}
