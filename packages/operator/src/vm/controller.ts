import type { CloudClient } from '@vmwright/cloud';
import {
  annotationsChanged,
  any,
  generationChanged,
  keyOf,
  type Logger,
  type Manager,
  Poller,
  type Reconcile,
  type ReconcileContext,
  requeueAfter,
  unlessAborted,
  type World,
} from '@vmwright/runtime';
import { deletionPolicyOf, isPaused } from '../annotations.ts';
import { Inventory } from './inventory.ts';
import { NO_MARKS } from './marks.ts';
import { isCloudTrouble, isOutdated, leaving, plan, type Seen, troubled } from './plan.ts';
import { VM } from './resource.ts';
import { remainingOf, seenBy } from './servers.ts';
import { troubleOf } from './trouble.ts';
import { unlessGone } from './unless-gone.ts';

export const FINALIZER = 'vmwright.dev/vm';

/** While a machine is on its way, in or out, it is looked at so often. */
const MOVING_MS = 2_000;
/** An annotation that goes wakes the object; this is for one whose going was missed. */
const HELD_MS = 10 * 60_000;
/** From which on failures in a row mean that nothing is known any more of the machines. */
const MANY_FAILURES = 3;

export interface VmControllerOptions {
  readonly world: World;
  readonly log: Logger;
  readonly cloud: CloudClient;
  /** Marks what is ours. */
  readonly cluster: string;
  /** How often the cloud is asked how its machines are. */
  readonly refreshMs: number;
  readonly concurrency: number;
}

/**
 * Machines of the private cloud.
 *
 * Guarantees: for each object at most one machine at every moment, whatever crashes and whatever is lost: its key is
 * fixed by the object's UID, and the intent is stored over the very version that was read before the cloud is asked. An
 * object goes only when the cloud says that its machine is gone. What is created for an object that is gone meanwhile is
 * removed by `sweeper`.
 */
export function controlVms(manager: Manager, options: VmControllerOptions): void {
  const { world, log, cloud, cluster, refreshMs, concurrency } = options;
  const inventory = new Inventory({ world, cloud, cluster, maxAgeMs: 2 * refreshMs });
  const vms = manager.caches.get(VM);
  /** As last looked at; reading all of them costs, so one look serves for both. */
  let areMoving = false;
  const keysOf = (is: (vm: VM) => boolean) => {
    const all = [...vms.list()];
    areMoving = all.some(isMoving);
    return all.filter(is).map(({ metadata }) => keyOf(metadata));
  };
  const outdated = async (signal: AbortSignal) => {
    try {
      await unlessAborted(inventory.refresh(), signal);
    } catch (error) {
      if (!signal.aborted) onError(error);
      return !signal.aborted && inventory.failures >= MANY_FAILURES ? keysOf(isTakenForKnown) : [];
    }
    const { servers } = inventory;
    return keysOf((vm) => isOutdated(vm, servers));
  };
  const onError = (error: unknown) =>
    log.warn({ error: String(error) }, 'the cloud could not be asked for its machines');
  const poller = new Poller({
    world,
    everyMs: () => (areMoving ? Math.min(MOVING_MS, refreshMs) : refreshMs),
    ask: outdated,
    onError,
  });
  manager.control({
    for: VM,
    when: any(generationChanged, annotationsChanged),
    concurrency,
    // Not longer: a cloud that is back after an hour is not to be waited for.
    backoff: { maxMs: 60_000 },
    sources: [poller.source],
    reconcile: reconciling(cloud, inventory, cluster, () => poller.within(MOVING_MS)),
    finalizer: { name: FINALIZER, finalize: finalizing(cloud) },
  });
}

/** Whether its status says how its machine is, which nobody knows while the cloud does not answer. */
function isTakenForKnown(vm: VM): boolean {
  const isLooked = vm.status?.vmId !== undefined && vm.metadata.deletionTimestamp === undefined;
  return isLooked && !isPaused(vm) && !isCloudTrouble(vm);
}

function isMoving(vm: VM): boolean {
  return vm.status?.opStatus === 'New' && vm.metadata.deletionTimestamp === undefined && !isPaused(vm);
}

/** @param onMoving called when a machine is on its way, up or down */
function reconciling(
  cloud: CloudClient,
  inventory: Inventory,
  cluster: string,
  onMoving: () => void,
): Reconcile<VM> {
  return async (found, context) => {
    const { setStatus, event, now, signal } = context;
    const ours = cloud.scoped({ signal, allow: context.assertMayAct });
    let vm = found;
    try {
      for (let seen: Seen = {}; ; ) {
        const step = plan(cluster, now(), vm, seen);
        switch (step.do) {
          case 'nothing':
            return undefined;
          case 'look':
            seen = { server: await inventory.find(step.id, signal) };
            break;
          case 'mark':
            seen = { server: (await unlessGone(ours.relabel(step.id, step.labels))) ?? { gone: step.id } };
            break;
          case 'check':
            seen = await seenBy(ours, vm, () => ours.check(step.name));
            break;
          case 'intend':
            vm = await setStatus(vm, step.status);
            seen = { ...seen, intended: true };
            break;
          case 'create':
            seen = await seenBy(ours, vm, () => ours.create(step.server, step.key));
            if (seen.server === undefined || 'gone' in seen.server) break;
            event(vm, { type: 'Normal', reason: 'Created', note: `machine ${seen.server.id} was created` });
            onMoving();
            break;
          case 'remove':
            await unlessGone(ours.delete(step.id));
            onMoving();
            seen = { ...seen, removed: true };
            break;
          case 'tell':
            if (step.event !== undefined && step.status.msg !== vm.status?.msg) event(vm, step.event);
            await setStatus(vm, step.status);
            return step.againMs === undefined ? undefined : requeueAfter(step.againMs);
        }
        if (seen.server !== undefined && 'id' in seen.server) inventory.saw(seen.server);
      }
    } catch (error) {
      await tellTrouble(vm, error, context);
      throw error;
    }
  };
}

/** Deletes the machine, and lets the object go when the cloud has none of it. */
function finalizing(cloud: CloudClient): Reconcile<VM> {
  return async (vm, context) => {
    const { setStatus, now, signal } = context;
    if (isPaused(vm)) return requeueAfter(HELD_MS);
    const policy = deletionPolicyOf(vm);
    if (typeof policy === 'object') {
      await setStatus(vm, leaving(vm, now(), `it is not deleted: ${policy.problem}`));
      return requeueAfter(HELD_MS);
    }
    const ours = cloud.scoped({ signal, allow: context.assertMayAct });
    try {
      const servers = await remainingOf(ours, vm);
      for (const { id } of servers) {
        if (policy === 'Orphan') await unlessGone(ours.relabel(id, NO_MARKS));
        else await unlessGone(ours.delete(id)); // also where it was asked for: who has forgotten is reminded
      }
      if (servers.length === 0 || policy === 'Orphan') return undefined;
      const [why = 'the cloud is removing the machine'] = servers.flatMap(({ message }) => message ?? []);
      await setStatus(vm, leaving(vm, now(), why));
      return requeueAfter(MOVING_MS);
    } catch (error) {
      await tellTrouble(vm, error, context);
      throw error;
    }
  };
}

/** What stands in the way is in the status too; the log has it in full, since it is thrown. */
async function tellTrouble(vm: VM, error: unknown, context: ReconcileContext<VM>): Promise<void> {
  const { setStatus, now, signal, log } = context;
  const trouble = troubleOf(error);
  if (signal.aborted || trouble === undefined) return;
  await setStatus(vm, troubled(vm, trouble, now())).catch((failure) =>
    log.debug({ error: String(failure) }, 'the trouble with the cloud could not be told'),
  );
}
