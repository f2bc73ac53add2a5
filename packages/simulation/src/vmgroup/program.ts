import { collectVmGroupGarbage, controlVmGroups, VCenter, VCenterPool } from '@vmwright/operator';
import { Channel } from '@vmwright/runtime';
import { VcenterClient } from '@vmwright/vsphere';
import { type ManagerListeners, observedManager } from '../scenario/observed-manager.ts';
import type { Program } from '../scenario/replicas.ts';
import { VCENTER } from '../vcenter/simulated.ts';

export const FINALIZER = 'vmwright.dev/vmgroup';
/** Cluster name in the ownership labels. */
export const CLUSTER = 'simulated';
/** Maximum number of concurrent vCenter operations of a leader. */
export const CONCURRENCY = 3;
const VCENTER_NAME = 'default';

/**
 * Interval of garbage collection. Shorter than the operator's default of one minute, so that wrong deletions
 * show within a short run.
 */
const GC_INTERVAL_MS = 15_000;
/**
 * Grace period of garbage collection. It is zero, because a longer period would hide bugs in which the operator
 * mistakes a machine for an orphan only briefly.
 */
const GRACE_MS = 0;
/**
 * Timeout of a vCenter request. It is longer than the maximum delay of one message (12 s), so that one slow message
 * alone does not cause a timeout. Two slow messages or an injected fault can cause one.
 */
const TIMEOUT_MS = 13_000;

export interface VmGroupProgramOptions extends ManagerListeners {
  readonly username: string;
  readonly password: string;
}

/** Returns the operator's program, limited to VmGroups. */
export function vmGroupProgram({ username, password, ...listeners }: VmGroupProgramOptions): Program {
  return async (world) => {
    const { manager, log } = observedManager(world, listeners);
    const events = new Channel();
    await using vcenters = new VCenterPool([
      new VCenter({
        world,
        log,
        name: VCENTER_NAME,
        placement: {},
        concurrency: CONCURRENCY,
        enqueue: (group) => events.enqueue(group),
        client: new VcenterClient({
          world,
          server: VCENTER,
          credentials: () => ({ username, password }),
          timeoutMs: TIMEOUT_MS,
          observer: {
            onError: (error) => log.warn({ error: String(error) }, 'Inventory watch failed, retrying'),
          },
        }),
      }),
    ]);
    const common = { world, log, cluster: CLUSTER, vcenters };
    controlVmGroups(manager, { ...common, events, concurrency: 4 });
    collectVmGroupGarbage(manager, { ...common, everyMs: GC_INTERVAL_MS, graceMs: GRACE_MS });
    await manager.run(world.stopping);
  };
}
