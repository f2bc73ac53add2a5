import type { Simulation } from '../world/simulation.ts';

/** Sets up a world, injects faults, stops them, and returns the violated invariants. */
export interface Scenario {
  readonly name: string;
  /**
   * Counters (see `Counts`) that must each be above zero after many seeds. A counter that stays zero shows that the
   * scenario does not cover its event.
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
