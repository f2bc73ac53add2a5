import {
  keyOf,
  Manager,
  Poller,
  type Reconcile,
  requeueAfter,
  silentLogger,
  type WorkQueue,
} from '@vmwright/runtime';
import { accessTo } from '../../apiserver/simulated.ts';
import { RemoteClient } from '../../remote/client.ts';
import type { RemoteMachine } from '../../remote/machine.ts';
import type { Program } from '../../scenario/replicas.ts';
import { drifted, MANAGER, type Observed, orphans, plan } from './plan.ts';
import { Machine } from './resource.ts';
import type { Variant } from './variant.ts';

export const LEASE = 'machines';
export const FINALIZER = 'simulation-test.vmwright.dev/machine';

/** Interval at which the controller lists the machines in the backend. */
const POLL_MS = 15_000;
/** Requeue interval while a machine is being deleted. */
const DELETING_MS = 2_000;

export interface MachineProgramOptions {
  readonly variant: Variant;
  /** API token of the backend. */
  readonly token: string;
  /** Called with the work queue of each replica that starts. */
  readonly onQueue?: (identity: string, queue: WorkQueue) => void;
}

/** Returns the program of one replica. */
export function machineProgram({ variant, token, onQueue }: MachineProgramOptions): Program {
  return (world) => {
    const remote = new RemoteClient({ world, token });
    const manager = new Manager({
      world,
      access: accessTo(),
      name: 'machines',
      log: silentLogger,
      election: { name: LEASE, identity: world.identity },
    });
    world.work.observe(manager);
    const uids = async (signal: AbortSignal) => {
      const { items } = await manager.client.list(Machine, { signal });
      return uidsOf(items);
    };
    const look = async (signal: AbortSignal) => {
      const before = variant.garbageCollection === 'objects first' ? await uids(signal) : undefined;
      const list = await remote.list(signal);
      const cached = [...manager.caches.get(Machine).list()];
      if (variant.garbageCollection !== 'never') {
        // Looks for the owners in the cache first. This usually avoids a list request for the objects. The cache alone
        // never decides, because it may lack an existing object.
        const suspects = orphans(list, before ?? uidsOf(cached));
        // Lists the objects after the machines. An object is created before its machine, and UIDs are never reused. So
        // if this list lacks the object of a machine, that object is gone for good. In the other order, an object and
        // its machine may have been created between the two lists.
        const known = before ?? (suspects.length > 0 ? await uids(signal) : new Set());
        for (const { id } of orphans({ ...list, items: suspects }, known)) await remote.delete(id, signal);
      }
      return drifted(cached, list.items).map(({ metadata }) => keyOf(metadata));
    };
    const { queue } = manager.control({
      for: Machine,
      concurrency: 2,
      backoff: { baseMs: 50, maxMs: 15_000 },
      sources: [new Poller({ world, everyMs: POLL_MS, poll: look, onError: () => undefined }).source],
      reconcile: reconciling(variant, remote),
      finalizer: { name: FINALIZER, finalize: finalizing(variant, remote) },
    });
    onQueue?.(world.identity, queue);
    return manager.run(world.stopping);
  };
}

function reconciling(variant: Variant, remote: RemoteClient): Reconcile<Machine> {
  return async (found, { signal, setStatus, event }) => {
    let object = found;
    for (let observed: Observed = {}; ; ) {
      const step = plan(variant, object, observed);
      switch (step.do) {
        case 'read':
          observed = { ...observed, machine: (await remote.get(step.id, signal)) ?? 'gone' };
          break;
        case 'look up': {
          const [machine] = await ownedBy(remote, step.uid, signal);
          observed = { ...observed, looked: true, ...(machine && { machine }) };
          break;
        }
        case 'intend':
          object = await setStatus(object, step.status);
          observed = { ...observed, intended: true };
          break;
        case 'create': {
          const machine = await remote.create(step.draft, signal);
          const note = `machine ${machine.id} was requested`;
          event(object, { type: 'Normal', reason: 'Created', note });
          observed = { ...observed, machine };
          break;
        }
        case 'resize':
          observed = { ...observed, machine: await remote.resize(step.id, step.size, signal) };
          break;
        case 'report':
          await setStatus(object, step.status);
          return step.requeueAfterMs === undefined ? undefined : requeueAfter(step.requeueAfterMs);
      }
    }
  };
}

/** Deletes the machines of an object. The object stays until the backend confirms that they are gone. */
function finalizing(variant: Variant, remote: RemoteClient): Reconcile<Machine> {
  return async ({ metadata: { uid = '' }, status }, { signal }) => {
    const found: RemoteMachine[] = [];
    const known = status?.machineId === undefined ? undefined : await remote.get(status.machineId, signal);
    if (known !== undefined) found.push(known);
    if (variant.token) {
      const keyed = await remote.byKey(uid, signal);
      if (keyed !== undefined && keyed.id !== known?.id) found.push(keyed);
    }
    if (variant.looksUp) {
      for (const { id } of await ownedBy(remote, uid, signal)) {
        const machine = id === known?.id ? undefined : await remote.get(id, signal); // the list may be outdated
        if (machine !== undefined) found.push(machine);
      }
    }
    for (const { id, state } of found) if (state !== 'deleting') await remote.delete(id, signal);
    return found.length === 0 ? undefined : requeueAfter(DELETING_MS);
  };
}

/** Returns the machines with the ownership label of an object. */
async function ownedBy(
  remote: RemoteClient,
  uid: string,
  signal: AbortSignal,
): Promise<readonly RemoteMachine[]> {
  const { items } = await remote.list(signal);
  return items.filter(({ owner }) => owner?.manager === MANAGER && owner.uid === uid);
}

function uidsOf(objects: Iterable<Machine>): ReadonlySet<string> {
  return new Set([...objects].map(({ metadata }) => metadata.uid ?? ''));
}
