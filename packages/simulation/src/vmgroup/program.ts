import { controlVmGroups, Site, Sites, vmGroupSweeper } from '@vmwright/operator';
import {
  Channel,
  type Controller,
  type ControllerOptions,
  jsonLogger,
  type KubeObject,
  Manager,
  type WorkQueue,
} from '@vmwright/runtime';
import { Vcenter } from '@vmwright/vsphere';
import { accessTo } from '../apiserver/simulated.ts';
import type { Program } from '../scenario/replicas.ts';
import { VCENTER } from '../vcenter/simulated.ts';

export const LEASE = 'vmwright';
export const FINALIZER = 'vmwright.dev/vmgroup';
/** Marks what is ours in vCenter. */
export const CLUSTER = 'simulated';
/** How much a leader keeps vCenter busy with at a time. */
export const CONCURRENCY = 3;
const SITE = 'default';

/** Oftener than the operator's usual minute: a history is short, and what is swept wrongly shall show in it. */
const SWEEP_MS = 15_000;
/** None: a grace hides that something is taken for nobody's for a moment. */
const GRACE_MS = 0;
/** A way there and back takes longer only where both are slow. */
const TIMEOUT_MS = 13_000;
/** Half as often as usual: renewals of the lease are most of all that happens, and other scenarios are about them. */
const RETRY_MS = 4_000;

export interface VmGroupProgramOptions {
  readonly username: string;
  readonly password: string;
  /** Told of the queue of each replica that starts. */
  readonly onQueue: (identity: string, queue: WorkQueue) => void;
  /** Told of each line that is logged. */
  readonly onLog: (line: string) => void;
}

/** The operator's program, as far as VmGroups are concerned: without its servers, which have no place in a simulated world. */
export function vmGroupProgram(options: VmGroupProgramOptions): Program {
  const { username, password, onQueue, onLog } = options;
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
    const wakes = new Channel();
    await using sites = new Sites([
      new Site({
        world,
        name: SITE,
        placement: {},
        concurrency: CONCURRENCY,
        wake: (group) => wakes.tell(group),
        vcenter: new Vcenter({
          world,
          server: VCENTER,
          credentials: () => ({ username, password }),
          timeoutMs: TIMEOUT_MS,
          observer: {
            troubled: (error) => log.warn({ error: String(error) }, 'vCenter cannot be followed'),
          },
        }),
      }),
    ]);
    const common = { world, log, cluster: CLUSTER, sites };
    controlVmGroups(manager, { ...common, wakes, concurrency: 4 });
    const { registry } = manager;
    manager.job(vmGroupSweeper({ ...common, everyMs: SWEEP_MS, graceMs: GRACE_MS, registry }));
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
