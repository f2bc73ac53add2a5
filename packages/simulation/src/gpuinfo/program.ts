import { type ComputeFacts, controlGpuInfos, FACT_KINDS, NodeFacts } from '@vmwright/operator';
import type { Manager } from '@vmwright/runtime';
import { type ManagerListeners, observedManager } from '../scenario/observed-manager.ts';
import type { ReplicaWorld } from '../scenario/replica-world.ts';
import type { Program } from '../scenario/replicas.ts';
import { HORIZON_MS } from './rules.ts';

/** Maximum clock skew of a replica. */
export const SKEW_MS = 20_000;

export interface GpuInfoProgramOptions extends ManagerListeners {
  /** Called when a replica starts. @returns the replica's view of the hosts of vCenter */
  readonly start: (world: ReplicaWorld, manager: Manager) => ComputeFacts;
}

/** Returns the operator's program, limited to GPUInfos. */
export function gpuInfoProgram({ start, ...listeners }: GpuInfoProgramOptions): Program {
  return async (world) => {
    const { manager } = observedManager(world, listeners);
    const { caches } = manager;
    using facts = new NodeFacts({ clock: world, caches, compute: start(world, manager) });
    controlGpuInfos(manager, { namespace: 'default', facts, reads: FACT_KINDS, horizonMs: HORIZON_MS });
    await manager.run(world.stopping);
  };
}
