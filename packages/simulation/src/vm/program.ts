import { CloudClient } from '@vmwright/cloud';
import { collectVmGarbage, controlVms } from '@vmwright/operator';
import { CLOUD } from '../cloud/simulated.ts';
import { type ManagerListeners, observedManager } from '../scenario/observed-manager.ts';
import type { Program } from '../scenario/replicas.ts';

export const FINALIZER = 'vmwright.dev/vm';
/** Cluster name in the ownership labels. */
export const CLUSTER = 'simulated';

const REFRESH_MS = 15_000;
/**
 * Interval of garbage collection. Shorter than the operator's default of one minute, so that wrong deletions
 * show within a short run.
 */
const GC_INTERVAL_MS = 12_000;
/**
 * Grace period of garbage collection. It is zero, because a longer period would hide bugs in which the operator
 * mistakes a machine for an orphan only briefly.
 */
const GRACE_MS = 0;
/**
 * Timeout of a cloud request. Longer than the maximum delay of one message (12 s), so that one slow message alone does
 * not cause a timeout. Two slow messages or an injected fault can cause one.
 */
const TIMEOUT_MS = 13_000;
/** Time without a response after which the operator reports the state of machines as unknown. */
export const UNKNOWN_AFTER_MS = 30_000;

export interface VmProgramOptions extends ManagerListeners {
  readonly apiKey: string;
}

/** Returns the operator's program, limited to VMs. */
export function vmProgram({ apiKey, ...listeners }: VmProgramOptions): Program {
  return async (world) => {
    const { manager, log } = observedManager(world, listeners);
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
    collectVmGarbage(manager, { world, cloud, cluster: CLUSTER, everyMs: GC_INTERVAL_MS, graceMs: GRACE_MS });
    await manager.run(world.stopping);
  };
}
