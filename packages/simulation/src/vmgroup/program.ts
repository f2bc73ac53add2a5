import { controlVmGroups, Site, Sites, sweepVmGroups } from '@vmwright/operator';
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
    const wakes = new Channel();
    await using sites = new Sites([
      new Site({
        world,
        log,
        name: SITE,
        placement: {},
        concurrency: CONCURRENCY,
        wake: (group) => wakes.enqueue(group),
        vcenter: new VcenterClient({
          world,
          server: VCENTER,
          credentials: () => ({ username, password }),
          timeoutMs: TIMEOUT_MS,
          observer: {
            onError: (error) => log.warn({ error: String(error) }, 'vCenter cannot be followed'),
          },
        }),
      }),
    ]);
    const common = { world, log, cluster: CLUSTER, sites };
    controlVmGroups(manager, { ...common, wakes, concurrency: 4 });
    sweepVmGroups(manager, { ...common, everyMs: SWEEP_MS, graceMs: GRACE_MS });
    await manager.run(world.stopping);
  };
}
