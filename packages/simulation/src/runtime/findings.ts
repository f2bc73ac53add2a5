import type { Violation } from '../scenario/scenario.ts';
import { InvariantError } from '../world/invariant-error.ts';
import type { Simulation } from '../world/simulation.ts';

/** What was found to be violated in a run. */
export class Findings {
  readonly #simulation: Simulation;
  readonly #violations: Violation[] = [];

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  get violations(): readonly Violation[] {
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

/** What a history violates, also by what nobody in it catches. */
export async function violationsOf(history: {
  readonly findings: Findings;
  run(): Promise<void>;
}): Promise<readonly Violation[]> {
  const { findings } = history;
  try {
    await history.run();
  } catch (error) {
    if (error instanceof InvariantError) throw error;
    findings.add('no uncaught errors', String(error));
  }
  return findings.violations;
}
