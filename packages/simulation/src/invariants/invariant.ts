import type { ApiServer } from '../apiserver/api-server.ts';
import type { AnyDeclaredKind } from '../apiserver/resource.ts';
import type { Traffic } from '../scenario/traffic.ts';
import type { Simulation } from '../world/simulation.ts';
import type { ExternalResources } from './external-resources.ts';

/** Ground truth for invariants: the state of the models, not what a simulated process observes. */
export interface Truth {
  readonly simulation: Simulation;
  readonly server: ApiServer;
  /** Kind of the objects that manage external resources. */
  readonly kind: AnyDeclaredKind;
  readonly external: ExternalResources;
  readonly traffic: Traffic;
}

/** A property that must hold in a scenario. */
export interface Invariant {
  readonly name: string;
  /**
   * Checks a property that must hold at every instant. Subscribes to changes instead of checking after each
   * step: this is cheaper, and misses no intermediate state.
   */
  readonly watch?: (truth: Truth, violated: (detail: string) => void) => void;
  /**
   * Checks a property that must hold after the faults stopped and the system converged. @returns one message
   * per violation
   */
  readonly healed?: (truth: Truth) => Iterable<string>;
}
