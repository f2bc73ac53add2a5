import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Violation } from '../scenario/scenario.ts';
import { type Registry, scenarioNamed } from './named.ts';
import { runSeed } from './seed.ts';

/** A seed that once found something, and is run before all others ever since. */
export interface KeptSeed {
  readonly scenario: string;
  readonly seed: number;
  /** What it has found. */
  readonly why: string;
}

export interface KeptOutcome extends KeptSeed {
  readonly violations: readonly Violation[];
}

const KEPT = fileURLToPath(new URL('../../seeds.json', import.meta.url));

/** @throws a sentence when the file says something else */
export function keptSeeds(file: string = KEPT): readonly KeptSeed[] {
  const list: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (Array.isArray(list) && list.every(isKept)) return list;
  throw new Error(`${file} is to be a list of { scenario, seed, why }`);
}

/** Runs them one after the other: few, and each as it was when it found something. */
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
