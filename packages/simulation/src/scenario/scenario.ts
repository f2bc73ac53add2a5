import type { Simulation } from '../world/simulation.ts';

/** One kind of history: sets up a world, lets it go wrong, heals it, and tells what was violated. */
export interface Scenario {
  readonly name: string;
  /** Counters (see Counts) of which each must be above zero over many seeds, else the scenario does not bite. */
  readonly mustHappen: readonly string[];
  run(simulation: Simulation): Promise<readonly Violation[]>;
}

/** A promise that did not hold, at a moment of virtual time (milliseconds since the simulation's start). */
export interface Violation {
  readonly invariant: string;
  readonly atMs: number;
  readonly detail: string;
}
