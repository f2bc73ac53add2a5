import { Crew } from '../runner/crew.ts';
import { runSeeds, type SeedsResult } from '../runner/seeds.ts';
import { machines } from '../samples/machines/scenario.ts';
import { VARIANTS, type Variant, WRONG_ORDER } from '../samples/machines/variant.ts';

/** What many seeds of one variant of the sample controller came to. */
export interface Sample {
  readonly variant: Variant;
  readonly result: SeedsResult;
}

/** Runs so many seeds of each variant, naive to sound, and of the one that only looks sound. */
export async function runSamples(seeds: number, workers: number): Promise<readonly Sample[]> {
  await using crew = new Crew({ workers });
  const samples: Sample[] = [];
  for (const variant of [...VARIANTS, WRONG_ORDER])
    samples.push({ variant, result: await runSeeds(machines(variant).name, { count: seeds, crew }) });
  return samples;
}
