import {
  type Controller,
  type ControllerOptions,
  jsonLogger,
  type KubeObject,
  Manager,
  type ManagerElection,
  type Replicas,
  type WorkQueue,
} from '@vmwright/runtime';
import { accessTo } from '../apiserver/simulated.ts';
import type { ReplicaWorld } from './replica-world.ts';

/** Listeners for internals of the simulated program. */
export interface ManagerListeners {
  /** Called with the work queue of each controller that is added. */
  readonly onQueue: (identity: string, queue: WorkQueue) => void;
  /** Called with each log line. */
  readonly onLog: (line: string, identity: string) => void;
}

/** Name of the Lease that the operator's replicas compete for. */
export const LEASE = 'vmwright';
/**
 * Interval of lease renewals. It is twice the default. With the default, half of the events of a simulated run would be
 * renewals, which other scenarios test.
 */
const RETRY_MS = 4_000;

/** Division of the work between the replicas. */
export interface ManagerMode extends Pick<ManagerElection, 'observesFirst'> {
  /** Number of shards. @default no sharding: one replica leads */
  readonly shards?: number | undefined;
}

/** Creates the operator's manager without HTTP servers, because the simulated world has none. */
export function observedManager(
  world: ReplicaWorld,
  { onQueue, onLog }: ManagerListeners,
  { shards, ...options }: ManagerMode = {},
) {
  const log = jsonLogger({ clock: world, write: (line) => onLog(line, world.identity) });
  const lease = { name: LEASE, identity: world.identity, retryMs: RETRY_MS };
  const replicas: Replicas =
    shards === undefined ? { election: { ...lease, ...options } } : { sharding: { ...lease, shards } };
  const manager = new ObservedManager(
    { world, access: accessTo(), name: 'vmwright', log, ...replicas },
    (queue) => onQueue(world.identity, queue),
  );
  world.work.observe(manager);
  return { manager, log };
}

class ObservedManager extends Manager {
  readonly #onQueue: (queue: WorkQueue) => void;

  constructor(options: ConstructorParameters<typeof Manager>[0], onQueue: (queue: WorkQueue) => void) {
    super(options);
    this.#onQueue = onQueue;
  }

  override control<T extends KubeObject>(options: ControllerOptions<T>): Controller<T> {
    const controller = super.control(options);
    this.#onQueue(controller.queue);
    return controller;
  }
}
