import type { Simulation } from '../world/simulation.ts';

/** Sets up a world, injects faults, stops them, and returns the violated invariants. */
export interface Scenario {
  readonly name: string;
  /**
   * Counters (see Counts) that must all be above zero over many seeds. Otherwise, the scenario does not cover these
   * events.
   */
  readonly mustHappen: readonly string[];
  run(simulation: Simulation): Promise<readonly Violation[]>;
}

/** A violated invariant. `atMs` is virtual time since the start of the simulation. */
export interface Violation {
  readonly invariant: string;
  readonly atMs: number;
  readonly detail: string;
}
