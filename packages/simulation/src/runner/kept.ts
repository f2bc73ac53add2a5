import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Violation } from '../scenario/scenario.ts';
import { type Registry, scenarioNamed } from './named.ts';
import { runSeed } from './seed.ts';

/** A seed that found a bug before. It runs before all other seeds. */
export interface KeptSeed {
  readonly scenario: string;
  readonly seed: number;
  /** The bug that it found. */
  readonly why: string;
}

export interface KeptOutcome extends KeptSeed {
  readonly violations: readonly Violation[];
}

const KEPT = fileURLToPath(new URL('../../seeds.json', import.meta.url));

/** Reads the regression seeds. @throws when the file does not contain a list of them */
export function keptSeeds(file: string = KEPT): readonly KeptSeed[] {
  const list: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (Array.isArray(list) && list.every(isKept)) return list;
  throw new Error(`${file} must contain a list of { scenario, seed, why }`);
}

/** Runs the regression seeds one after the other. */
export async function runKept(
  kept: readonly KeptSeed[],
  registry: Registry,
): Promise<readonly KeptOutcome[]> {
  const outcomes: KeptOutcome[] = [];
  for (const each of kept) {
    const { violations } = await runSeed(scenarioNamed(each.scenario, registry), each.seed);
    outcomes.push({ ...each, violations });
  }
  return outcomes;
}

function isKept(value: unknown): value is KeptSeed {
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
