import {
  annotationsChanged,
  any,
  type Channel,
  generationChanged,
  keyOf,
  type Logger,
  type Manager,
  Poller,
  statusChanged,
  type Tracer,
  type World,
} from '@vmwright/runtime';
import { Liveness } from '../vcenter/liveness.ts';
import type { VCenterPool } from '../vcenter/vcenter-pool.ts';
import { closeUnusedFolders, vcenterOf } from './placement.ts';
import { VmGroupReconciler } from './reconciler.ts';
import { VmGroup } from './resource.ts';

export const FINALIZER = 'vmwright.dev/vmgroup';

/** Interval at which changes of the vCenters' availability are detected. */
const LIVENESS_MS = 2_000;
/** Timeout of a reconcile. It limits how long a vCenter that hangs delays the groups on other vCenters. */
const TIMEOUT_MS = 30_000;
/** Maximum delay of a retry. Without it, groups could wait for another hour after an outage of an hour. */
const MAX_BACKOFF_MS = 60_000;

export interface VmGroupControllerOptions {
  readonly world: World;
  readonly log: Logger;
  /** Records operations as spans. @default no tracing */
  readonly tracer?: Tracer | undefined;
  readonly vcenters: VCenterPool;
  /**
   * Channel for the keys of groups. A group is enqueued after a change in vCenter, when a permit of a task limit is
   * free, and when an operation has finished.
   */
  readonly events: Channel;
  /** Id of this cluster in the ownership labels. */
  readonly cluster: string;
  /** Namespaces that the operator watches. @default all */
  readonly namespaces?: readonly string[] | undefined;
  readonly concurrency: number;
}

/**
 * Adds the controller of VmGroup: machines cloned from templates on vSphere.
 *
 * Guarantees:
 * - A slot (the number of a machine in the group) never has more than one machine, even after crashes and lost
 *   requests. The slot is stored, with a resourceVersion precondition, before the clone is requested. Name and UUID of
 *   the machine are derived from group and slot. vCenter rejects a second machine of the same name in a folder.
 * - A machine is removed only after its slot was stored as terminating.
 * - A machine that has neither the UUID of a slot nor the ownership labels of the group is neither counted nor changed.
 *   A machine that has the UUID of a slot but lacks the labels gets them when the slot is cloned again.
 * - The finalizer of a group stays until all machines of the group are deleted or orphaned.
 */
export function controlVmGroups(manager: Manager, options: VmGroupControllerOptions): void {
  const { world, log, vcenters, events, concurrency } = options;
  const groups = manager.caches.get(VmGroup);
  const liveness = new Liveness(vcenters);
  const poller = new Poller({
    world,
    everyMs: LIVENESS_MS,
    poll: async () => {
      const changed = liveness.changed();
      closeUnusedFolders(vcenters, groups.list());
      if (changed.size === 0) return [];
      return [...groups.list()]
        .filter((group) => changed.has(vcenterOf(vcenters, group)))
        .map(({ metadata }) => keyOf(metadata));
    },
    onError: (error) =>
      log.warn({ error: String(error) }, 'Checking whether the vCenters are available failed'),
  });
  const reconciler = new VmGroupReconciler({ ...options, enqueue: (key) => events.enqueue(key) });
  groups.subscribe((event) => reconciler.groupChanged(event));
  manager.showOperations('vmgroup', () => reconciler.operations());
  manager.control({
    for: VmGroup,
    predicate: any(generationChanged, annotationsChanged, statusChanged), // statusChanged, so that an edited status is restored
    concurrency,
    backoff: { maxMs: MAX_BACKOFF_MS },
    resyncMs: 5 * 60_000,
    timeoutMs: TIMEOUT_MS,
    onStartedLeading: () => reconciler.startedLeading(),
    sources: [events.source, poller.source],
    reconcile: (group, context) => reconciler.reconcile(group, context),
    finalizer: { name: FINALIZER, finalize: (group, context) => reconciler.reconcileDelete(group, context) },
  });
}
