import { CloudClient } from '@vmwright/cloud';
import { collectVmGarbage, controlVms } from '@vmwright/operator';
import { CLOUD } from '../cloud/simulated.ts';
import { type Observing, observedManager } from '../scenario/observed-manager.ts';
import type { Program } from '../scenario/replicas.ts';

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
/** Without an answer for this long, the operator says that it does not know how machines are. */
export const UNKNOWN_AFTER_MS = 30_000;

export interface VmProgramOptions extends Observing {
  readonly apiKey: string;
}

/** The operator's program, as far as VMs are concerned. */
export function vmProgram({ apiKey, ...observing }: VmProgramOptions): Program {
  return async (world) => {
    const { manager, log } = observedManager(world, observing);
    await using cloud = new CloudClient({ world, url: CLOUD, apiKey, timeoutMs: TIMEOUT_MS });
    controlVms(manager, {
      world,
      log,
      cloud,
      cluster: CLUSTER,
      refreshMs: REFRESH_MS,
      timeoutMs: TIMEOUT_MS,
      unknownAfterMs: UNKNOWN_AFTER_MS,
      concurrency: 2,
    });
    collectVmGarbage(manager, { world, cloud, cluster: CLUSTER, everyMs: SWEEP_MS, graceMs: GRACE_MS });
    await manager.run(world.stopping);
  };
}
