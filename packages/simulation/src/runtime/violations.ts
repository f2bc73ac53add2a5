import type { Violation } from '../scenario/scenario.ts';
import { InvariantError } from '../world/invariant-error.ts';
import type { Simulation } from '../world/simulation.ts';

/** Collects the violations of a run. */
export class Violations {
  readonly #simulation: Simulation;
  readonly #violations: Violation[] = [];

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  get all(): readonly Violation[] {
    return this.#violations;
  }

  get any(): boolean {
    return this.#violations.length > 0;
  }

  add(invariant: string, detail: string): void {
    const atMs = this.#simulation.schedule.now;
    this.#simulation.note('invariant', `${invariant}: ${detail}`);
    this.#violations.push({ invariant, atMs, detail });
  }
}

/** Executes one run of a scenario and returns its violations, including uncaught errors. */
export async function violationsOf(history: {
  readonly violations: Violations;
  run(): Promise<void>;
}): Promise<readonly Violation[]> {
  const { violations } = history;
  try {
    await history.run();
  } catch (error) {
    if (error instanceof InvariantError) throw error;
    violations.add('no uncaught errors', String(error));
  }
  return violations.all;
}
