import {
  type Controller,
  type ControllerOptions,
  jsonLogger,
  type KubeObject,
  Manager,
  type WorkQueue,
} from '@vmwright/runtime';
import { accessTo } from '../apiserver/simulated.ts';
import type { ReplicaWorld } from './replica-world.ts';

/** Told of what is nobody's business in the real program. */
export interface Observing {
  /** Told of the queue of each replica that starts. */
  readonly onQueue: (identity: string, queue: WorkQueue) => void;
  /** Told of each line that is logged. */
  readonly onLog: (line: string, identity: string) => void;
}

/** Of the operator's replicas. */
export const LEASE = 'vmwright';
/** Half as often as usual: renewals of the lease are half of all that happens, and other scenarios are about them. */
const RETRY_MS = 4_000;

/** The manager of the operator's program, without its servers, which have no place in a simulated world. */
export function observedManager(world: ReplicaWorld, { onQueue, onLog }: Observing) {
  const log = jsonLogger({ clock: world, write: (line) => onLog(line, world.identity) });
  const election = { name: LEASE, identity: world.identity, retryMs: RETRY_MS };
  const manager = new ObservedManager(
    { world, access: accessTo(), name: 'vmwright', log, election },
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
