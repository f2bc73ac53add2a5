import { controlKubevirt } from '@vmwright/operator';
import { type ManagerListeners, observedManager } from '../scenario/observed-manager.ts';
import type { Program } from '../scenario/replicas.ts';

export const IMAGE_FINALIZER = 'vmwright.dev/vmdiskimage';
export const MACHINE_FINALIZER = 'vmwright.dev/virtualmachine';

const DAY_MS = 86_400_000;

/** Limits of imports. They are far shorter than the operator's defaults, so that short runs reach each of them. */
export const SYNCS = {
  maxBackoffMs: 5_000,
  maxTotalMs: 120_000,
  maxAttemptMs: 25_000,
  maxRestarts: 2,
  stalledAfterMs: 8_000,
} as const;

export interface KubevirtProgramOptions extends ManagerListeners {
  /** Maximum number of images that are synced at the same time. */
  readonly limit: number;
}

/** Returns the operator's program, limited to VirtualMachines and VMDiskImages. */
export function kubevirtProgram({ limit, ...listeners }: KubevirtProgramOptions): Program {
  return async (world) => {
    const { manager } = observedManager(world, listeners);
    const settings = {
      imageNamespaces: ['*'],
      imageCreationNamespaces: ['*'],
      syncs: { ...SYNCS, concurrency: limit },
      pruneAfterMs: 30 * DAY_MS,
      concurrency: 2,
    };
    controlKubevirt(manager, { world, namespace: 'default', ...settings });
    await manager.run(world.stopping);
  };
}
