import { collectVmGroupGarbage, controlVmGroups, VCenter, VCenterPool } from '@vmwright/operator';
import { Channel } from '@vmwright/runtime';
import { VcenterClient } from '@vmwright/vsphere';
import { type Observing, observedManager } from '../scenario/observed-manager.ts';
import type { Program } from '../scenario/replicas.ts';
import { VCENTER } from '../vcenter/simulated.ts';

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

export interface VmGroupProgramOptions extends Observing {
  readonly username: string;
  readonly password: string;
}

/** The operator's program, as far as VmGroups are concerned. */
export function vmGroupProgram({ username, password, ...observing }: VmGroupProgramOptions): Program {
  return async (world) => {
    const { manager, log } = observedManager(world, observing);
    const events = new Channel();
    await using vcenters = new VCenterPool([
      new VCenter({
        world,
        log,
        name: SITE,
        placement: {},
        concurrency: CONCURRENCY,
        enqueue: (group) => events.enqueue(group),
        client: new VcenterClient({
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
    const common = { world, log, cluster: CLUSTER, vcenters };
    controlVmGroups(manager, { ...common, events, concurrency: 4 });
    collectVmGroupGarbage(manager, { ...common, everyMs: SWEEP_MS, graceMs: GRACE_MS });
    await manager.run(world.stopping);
  };
}
