import {
  type CloudClient,
  CloudError,
  GoneError,
  NameTakenError,
  ProhibitedNameError,
  type Server,
} from '@vmwright/cloud';
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
import { isOrphaned, isPaused } from '../annotations.ts';
import { Inventory, isUnreachable } from './inventory.ts';
import { marksOfOne, NO_MARKS, ownerOf } from './marks.ts';
import { failed, isOutdated, plan, type Refusal, type Seen } from './plan.ts';
import { VM } from './resource.ts';
import { unlessGone } from './unless-gone.ts';

export const FINALIZER = 'vmwright.dev/vm';

/** While a machine is on its way, in or out, it is looked at so often. */
const MOVING_MS = 2_000;
/** An annotation that goes wakes the object; this is for one whose going was missed. */
const PAUSED_MS = 10 * 60_000;
/** From which on failures in a row mean that nothing is known any more of machines that ran. */
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
  const isMoving = () => [...vms.list()].some((vm) => vm.status?.opStatus === 'New' && !isPaused(vm));
  const outdated = async (signal: AbortSignal) => {
    try {
      const servers = await unlessAborted(inventory.refresh(), signal);
      return keysOf((vm) => isOutdated(vm, servers));
    } catch (error) {
      if (signal.aborted || inventory.failures < MANY_FAILURES) throw error;
      return keysOf((vm) => vm.status?.opStatus === 'Running');
    }
  };
  const keysOf = (is: (vm: VM) => boolean) =>
    [...vms.list()].filter(is).map(({ metadata }) => keyOf(metadata));
  const poller = new Poller({
    world,
    everyMs: () => (isMoving() ? Math.min(MOVING_MS, refreshMs) : refreshMs),
    ask: outdated,
    onError: (error) => log.warn({ error: String(error) }, 'the cloud could not be asked for its machines'),
  });
  manager.control({
    for: VM,
    when: any(generationChanged, annotationsChanged),
    concurrency,
    // Not longer: a cloud that is back after an hour is not to be waited for.
    backoff: { maxMs: 60_000 },
    sources: [poller.source],
    reconcile: reconciling(cloud, inventory, cluster, () => poller.within(MOVING_MS)),
    finalizer: { name: FINALIZER, finalize: finalizing(cloud, cluster) },
  });
}

/** @param onCreated called when a machine is on its way up */
function reconciling(
  cloud: CloudClient,
  inventory: Inventory,
  cluster: string,
  onCreated: () => void,
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
          case 'check':
            seen = await nameOf(ours, cluster, vm, () => ours.check(step.name));
            break;
          case 'intend':
            vm = await setStatus(vm, step.status);
            if (step.event !== undefined) event(vm, step.event);
            seen = { ...(seen.name && { name: seen.name }), intended: true };
            break;
          case 'create':
            seen = {
              ...seen,
              ...(await nameOf(ours, cluster, vm, () => ours.create(step.server, step.key))),
            };
            if (seen.server === undefined || 'gone' in seen.server) break;
            onCreated();
            event(vm, { type: 'Normal', reason: 'Created', note: `machine ${seen.server.id} was created` });
            break;
          case 'tell':
            if (step.event !== undefined && step.status.msg !== vm.status?.msg) event(vm, step.event);
            await setStatus(vm, step.status);
            return step.againMs === undefined ? undefined : requeueAfter(step.againMs);
        }
      }
    } catch (error) {
      await tellFailure(vm, error, context);
      throw error;
    }
  };
}

/**
 * What comes of asking for a name or a server: it is ours, or accepted, or refused. That the name is taken says nothing
 * yet: after an answer that got lost, it is taken by the machine that we asked for.
 */
async function nameOf(
  cloud: CloudClient,
  cluster: string,
  vm: VM,
  ask: () => Promise<Server | void>,
): Promise<Seen> {
  try {
    const server = await ask();
    return server === undefined ? { name: 'accepted' } : { server };
  } catch (error) {
    if (error instanceof GoneError) return { server: { gone: error.serverId ?? 'of this VM' } };
    if (error instanceof ProhibitedNameError) {
      // It may have become so after the machine was made, and before we have learned of that.
      const [server] = vm.status?.attempts === undefined ? [] : await serversOf(cloud, cluster, vm);
      return server === undefined ? { name: refusal('Prohibited', error) } : { server };
    }
    if (!(error instanceof NameTakenError)) throw error;
    const server = error.serverId === undefined ? undefined : await unlessGone(cloud.get(error.serverId));
    if (server === undefined) throw error; // the name is free by now: the next try finds it so
    return ownerOf(server) === vm.metadata.uid ? { server } : { name: refusal('Taken', error) };
  }
}

function refusal(reason: Refusal['reason'], { detail }: CloudError): Refusal {
  return { reason, message: detail };
}

/** Deletes the machine, and lets the object go when the cloud has none of it. */
function finalizing(cloud: CloudClient, cluster: string): Reconcile<VM> {
  return async (vm, context) => {
    if (isPaused(vm)) return requeueAfter(PAUSED_MS);
    const ours = cloud.scoped({ signal: context.signal, allow: context.assertMayAct });
    try {
      const servers = await serversOf(ours, cluster, vm);
      for (const { id, state } of servers) {
        if (isOrphaned(vm)) await unlessGone(ours.relabel(id, NO_MARKS));
        else if (state !== 'deleting') await unlessGone(ours.delete(id));
      }
      return servers.length === 0 || isOrphaned(vm) ? undefined : requeueAfter(MOVING_MS);
    } catch (error) {
      await tellFailure(vm, error, context);
      throw error;
    }
  };
}

/** All servers that were made for an object, also one whose id we have never learned. */
async function serversOf(
  cloud: CloudClient,
  cluster: string,
  { metadata, status }: VM,
): Promise<readonly Server[]> {
  const servers = new Map<string, Server>();
  for await (const page of cloud.list({ labels: marksOfOne(cluster, metadata.uid ?? '') }))
    for (const server of page) servers.set(server.id, server);
  const { vmId } = status ?? {};
  // A list may lag behind.
  const known = vmId === undefined || servers.has(vmId) ? undefined : await unlessGone(cloud.get(vmId));
  if (known !== undefined && ownerOf(known) === metadata.uid) servers.set(known.id, known);
  return [...servers.values()];
}

/** What stands in the way is in the status too; the log has it in full. */
async function tellFailure(
  vm: VM,
  error: unknown,
  { setStatus, now, signal }: ReconcileContext<VM>,
): Promise<void> {
  if (signal.aborted) return;
  if (isUnreachable(error))
    await setStatus(
      vm,
      failed(
        vm,
        { reason: 'CloudUnreachable', message: 'the cloud does not answer; it is asked again' },
        now(),
      ),
    );
  else if (error instanceof CloudError)
    await setStatus(
      vm,
      failed(
        vm,
        { reason: 'CloudRefused', message: `the cloud refuses: ${error.detail} It is asked again.` },
        now(),
      ),
    );
}
