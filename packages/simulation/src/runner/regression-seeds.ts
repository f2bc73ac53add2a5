import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Violation } from '../scenario/scenario.ts';
import { type Registry, scenarioNamed } from './named.ts';
import { runSeed } from './seed.ts';

/** A seed that found a bug before. It runs before all other seeds. */
export interface RegressionSeed {
  readonly scenario: string;
  readonly seed: number;
  /** The bug that the seed found. */
  readonly why: string;
}

export interface RegressionOutcome extends RegressionSeed {
  readonly violations: readonly Violation[];
}

const FILE = fileURLToPath(new URL('../../seeds.json', import.meta.url));

/** Reads the regression seeds. @throws when the file does not contain a list of them */
export function regressionSeeds(file: string = FILE): readonly RegressionSeed[] {
  const list: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (Array.isArray(list) && list.every(isRegressionSeed)) return list;
  throw new Error(`${file} must contain a list of { scenario, seed, why }`);
}

/** Runs the regression seeds one after the other. */
export async function runRegressionSeeds(
  seeds: readonly RegressionSeed[],
  registry: Registry,
): Promise<readonly RegressionOutcome[]> {
  const outcomes: RegressionOutcome[] = [];
  for (const each of seeds) {
    const { violations } = await runSeed(scenarioNamed(each.scenario, registry), each.seed);
    outcomes.push({ ...each, violations });
  }
  return outcomes;
}

function isRegressionSeed(value: unknown): value is RegressionSeed {
  return (
    typeof value === 'object' &&
    value !== null &&
    'scenario' in value &&
    typeof value.scenario === 'string' &&
    'seed' in value &&
    Number.isSafeInteger(value.seed) &&
    'why' in value &&
    typeof value.why === 'string' &&
    value.why !== ''
  );
}
