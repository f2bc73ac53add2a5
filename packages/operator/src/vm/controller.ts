import type { CloudClient } from '@vmwright/cloud';
import {
  Availability,
  annotationsChanged,
  any,
  Channel,
  generationChanged,
  keyOf,
  type Logger,
  type Manager,
  Poller,
  statusChanged,
  unlessAborted,
  type World,
} from '@vmwright/runtime';
import { announceDeletion } from './deletion-status.ts';
import { BACKEND, toCondition } from './errors.ts';
import { isOutdated } from './plan.ts';
import { pollingOf } from './polling.ts';
import { VmReconciler } from './reconciler.ts';
import { VM } from './resource.ts';
import { ServerInventory } from './server-inventory.ts';
import { cloudTroubleOf } from './status.ts';

export const FINALIZER = 'vmwright.dev/vm';

/** While a machine is being created or deleted, the cloud is asked this often. */
const MOVING_MS = 2_000;
/** While the cloud does not answer, it is asked this often, so that the operator notices soon when it is back. */
const FAILING_MS = 3_000;

export interface VmControllerOptions {
  readonly world: World;
  readonly log: Logger;
  readonly cloud: CloudClient;
  /** Marks what is ours. */
  readonly cluster: string;
  /** How often the cloud is asked how its machines are; more often where `unknownAfterMs` needs it. */
  readonly refreshMs: number;
  /** Time for one request to the cloud. */
  readonly timeoutMs: number;
  /** Time without an answer from the cloud after which Ready is Unknown. */
  readonly unknownAfterMs: number;
  readonly concurrency: number;
}

/**
 * Machines of the private cloud.
 *
 * Guarantees: for each object at most one machine at every moment, whatever crashes and whatever is lost: its key is
 * fixed by the object's UID, and the intent is stored over the very version that was read before the cloud is asked. An
 * object goes only when the cloud says that its machine is gone. What is created for an object that is gone meanwhile is
 * removed by `sweeper`. Without an answer from the cloud for `unknownAfterMs`, Ready of every object is Unknown; a
 * deletion is visible in the status at once, whatever the cloud does.
 */
export function controlVms(manager: Manager, options: VmControllerOptions): void {
  const { world, log, cloud, cluster, refreshMs, unknownAfterMs, concurrency } = options;
  const { listTimeoutMs, everyMs } = pollingOf(options);
  const vms = manager.caches.get(VM);
  const wakes = new Channel();
  const availability = new Availability({
    clock: world,
    log,
    backend: BACKEND,
    afterMs: unknownAfterMs,
    onChange: () => {
      for (const key of vms.keys()) wakes.enqueue(key);
    },
  });
  const inventory = new ServerInventory({
    world,
    cloud,
    cluster,
    maxAgeMs: 2 * refreshMs,
    timeoutMs: listTimeoutMs,
    availability,
  });
  /** As last looked at; reading all of them costs, so one look serves for both. */
  let areMoving = false;
  let isFailing = false;
  const keysOf = (is: (vm: VM) => boolean) => {
    const all = [...vms.list()];
    areMoving = all.some(isMoving);
    return all.filter(is).map(({ metadata }) => keyOf(metadata));
  };
  const outdated = async (signal: AbortSignal) => {
    try {
      await unlessAborted(inventory.refresh(), signal);
      isFailing = false;
    } catch (error) {
      isFailing = true;
      if (!signal.aborted) log.debug({ error: String(error) }, 'Listing servers failed');
      const { outage } = availability;
      const reason = outage && toCondition(outage.error)?.reason;
      // The cause of an outage may change: hanging first, then refusing the key.
      return reason === undefined ? [] : keysOf(({ status }) => cloudTroubleOf(status) !== reason);
    }
    const { servers } = inventory;
    return keysOf((vm) => isOutdated(vm, servers));
  };
  const poller = new Poller({
    world,
    everyMs: () => Math.min(isFailing ? FAILING_MS : areMoving ? MOVING_MS : everyMs, everyMs),
    poll: outdated,
    onError: (error) => log.error({ error: String(error) }, 'Refreshing VMs failed'),
  });
  const reconciler = new VmReconciler({
    cloud,
    inventory,
    availability,
    cluster,
    onMoving: () => poller.within(MOVING_MS),
  });
  manager.control({
    for: VM,
    predicate: any(generationChanged, annotationsChanged, statusChanged),
    concurrency,
    // Not longer: a cloud that is back after an hour is not to be waited for.
    backoff: { maxMs: 60_000 },
    sources: [
      wakes.source,
      (wake, signal) => {
        availability.restart(); // while another replica led, this one did not ask
        return poller.source(wake, signal);
      },
    ],
    reconcile: reconciler.reconcile,
    finalizer: { name: FINALIZER, finalize: reconciler.finalize },
  });
  announceDeletion(manager, FINALIZER);
}

function isMoving(vm: VM): boolean {
  return vm.status?.opStatus === 'New' && vm.metadata.deletionTimestamp === undefined;
}
