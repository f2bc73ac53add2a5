import type { Simulation } from '../world/simulation.ts';

/** Sets up a world, injects faults, heals it and returns the violated invariants. */
export interface Scenario {
  readonly name: string;
  /**
   * Counters (see Counts) that must all be above zero over many seeds; otherwise the scenario does not test
   * what it should.
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
