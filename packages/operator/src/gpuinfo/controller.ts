import {
  annotationsChanged,
  any,
  Channel,
  ConfigMap,
  type ControllerPermissions,
  generationChanged,
  type Kind,
  type Manager,
  type Permission,
  statusChanged,
} from '@vmwright/runtime';
import { Allocations } from './allocations.ts';
import type { FactsSource } from './facts-source.ts';
import { RESERVATIONS_NAME, reservationStore } from './ledger.ts';
import { gpuMetrics } from './metrics.ts';
import { GpuInfoReconciler } from './reconciler.ts';
import { Requests } from './requests.ts';
import { GPUInfo } from './resource.ts';
import { UnwatchedLog } from './unwatched.ts';

/** Number of concurrent reconciles. They share one allocation and write their statuses concurrently. */
const WORKERS = 8;
/** Maximum delay of a retry, so that objects are reconciled soon after an outage of the API server. */
const MAX_BACKOFF_MS = 60_000;
/** Interval at which the stored reservations are compared with the objects, even without events. */
const SWEEP_MS = 60_000;

export interface GpuInfoControllerOptions {
  /** Namespace of the operator, which contains the ConfigMap with the reservations. */
  readonly namespace: string;
  /** Namespaces that the operator watches. @default all */
  readonly namespaces?: readonly string[] | undefined;
  readonly facts: FactsSource;
  /** Kinds that the facts come from. Their caches are synced before the first reconcile. */
  readonly reads: readonly Kind[];
  /** Time for which a node counts as available if no maintenance of the node is known. */
  readonly horizonMs: number;
}

/**
 * Returns the permissions of the controller, for the RBAC that the operator ships.
 * @param reads kinds that the facts about nodes, GPUs and jobs come from
 */
export function gpuInfoPermissions(reads: readonly Kind[]): ControllerPermissions {
  return { for: GPUInfo, reads, permissions: [{ kind: GPUInfo, verbs: ['get'] }] };
}

/**
 * Permissions of the controller in the operator's namespace. RBAC cannot restrict `create` by name, so this verb
 * applies to all ConfigMaps.
 */
export const GPUINFO_OWN_PERMISSIONS: readonly Permission[] = [
  { kind: ConfigMap, verbs: ['create'] },
  { kind: ConfigMap, verbs: ['get', 'patch'], names: [RESERVATIONS_NAME] },
];

/**
 * Adds the controller of GPUInfos to the manager.
 *
 * Guarantees:
 * - No GPU is reserved for two objects, even if several replicas run or a replica crashes. A reservation is stored with
 *   a resourceVersion precondition before a status mentions it.
 * - A reservation stays while its node is suitable. It ends when `desAccTime` has passed, its job has ended or its
 *   object is deleted.
 * - An object is reconciled again when its spec, the facts or other reservations change. It is also reconciled at each
 *   time that its status depends on.
 * - The controller does not poll vCenter. In the API server, it polls only the ConfigMap with the reservations.
 */
export function controlGpuInfos(manager: Manager, options: GpuInfoControllerOptions): void {
  const { namespace, namespaces, facts, reads, horizonMs } = options;
  const infos = manager.caches.get(GPUInfo);
  const requests = new Requests();
  const channel = new Channel();
  const enqueueAll = () => {
    for (const { key } of requests.all) channel.enqueue(key);
  };
  infos.subscribe((event) => {
    requests.update(event);
    if (event.type === 'removed') enqueueAll(); // the GPUs of the removed GPUInfo become free
  });
  facts.subscribe(enqueueAll);
  const allocations = new Allocations({
    requests,
    facts: () => facts.facts,
    horizonMs,
    namespaces,
    onStored: (keys) => {
      for (const key of keys) channel.enqueue(key);
    },
  });
  gpuMetrics(manager.registry, allocations, () => manager.isActive);
  const { reconcile } = new GpuInfoReconciler({ allocations, namespace, horizonMs });
  manager.control({
    for: GPUInfo,
    predicate: any(generationChanged, annotationsChanged, statusChanged), // statusChanged, so that an edited status is restored
    reads,
    sources: [channel.source],
    concurrency: WORKERS,
    backoff: { maxMs: MAX_BACKOFF_MS },
    onStartedLeading: () => allocations.reset(),
    reconcile,
  });
  const unwatched = new UnwatchedLog();
  manager.job({
    name: 'gpu-reservations',
    everyMs: SWEEP_MS,
    reads: [GPUInfo, ...reads],
    run: async ({ client, now, log }) => {
      await allocations.sweep(reservationStore(client, namespace), now);
      unwatched.report(allocations.latest?.unwatched ?? [], log);
    },
  });
}
