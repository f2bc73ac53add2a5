import { CloudClient } from '@vmwright/cloud';
import { controlVms, sweeper } from '@vmwright/operator';
import {
  type Controller,
  type ControllerOptions,
  jsonLogger,
  type KubeObject,
  Manager,
  type WorkQueue,
} from '@vmwright/runtime';
import { accessTo } from '../apiserver/simulated.ts';
import { CLOUD } from '../cloud/simulated.ts';
import type { Program } from '../scenario/replicas.ts';

export const LEASE = 'vmwright';
export const FINALIZER = 'vmwright.dev/vm';
/** Marks what is ours in the cloud. */
export const CLUSTER = 'simulated';

const REFRESH_MS = 15_000;
/** Oftener than the operator's usual minute: a history is short, and what is swept wrongly shall show in it. */
const SWEEP_MS = 12_000;
/** None: a grace hides that something is taken for nobody's for a moment. */
const GRACE_MS = 0;
/** A way there and back takes longer only where both are slow: at rest the cloud is not to be told as unreachable. */
const TIMEOUT_MS = 13_000;
/** Half as often as usual: renewals of the lease are half of all that happens, and other scenarios are about them. */
const RETRY_MS = 4_000;

export interface VmProgramOptions {
  readonly apiKey: string;
  /** Told of the queue of each replica that starts. */
  readonly onQueue: (identity: string, queue: WorkQueue) => void;
  /** Told of each line that is logged. */
  readonly onLog: (line: string) => void;
}

/** The operator's program, as far as VMs are concerned: without its servers, which have no place in a simulated world. */
export function vmProgram({ apiKey, onQueue, onLog }: VmProgramOptions): Program {
  return async (world) => {
    const log = jsonLogger({ clock: world, write: onLog });
    const manager = new ObservedManager(
      {
        world,
        access: accessTo(),
        name: 'vmwright',
        log,
        election: { name: LEASE, identity: world.identity, retryMs: RETRY_MS },
      },
      (queue) => onQueue(world.identity, queue),
    );
    await using cloud = new CloudClient({ world, url: CLOUD, apiKey, timeoutMs: TIMEOUT_MS });
    controlVms(manager, { world, log, cloud, cluster: CLUSTER, refreshMs: REFRESH_MS, concurrency: 2 });
    const { registry } = manager;
    manager.job(sweeper({ world, cloud, cluster: CLUSTER, everyMs: SWEEP_MS, graceMs: GRACE_MS, registry }));
    await manager.run(world.stopping);
  };
}

/** Tells of the queues of its controllers, which are nobody's business in the real program. */
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
