import { runSeeds, type SeedsResult } from '../runner/seeds.ts';
import { WorkerPool } from '../runner/worker-pool.ts';
import { machines } from '../samples/machines/scenario.ts';
import { VARIANTS, type Variant, WRONG_ORDER } from '../samples/machines/variant.ts';

/** Result of running many seeds with one variant of the sample controller. */
export interface Sample {
  readonly variant: Variant;
  readonly result: SeedsResult;
}

/** Runs this number of seeds with each variant of the sample controller. */
export async function runSamples(seeds: number, workers: number): Promise<readonly Sample[]> {
  await using pool = new WorkerPool({ workers });
  const samples: Sample[] = [];
  for (const variant of [...VARIANTS, WRONG_ORDER])
    samples.push({ variant, result: await runSeeds(machines(variant).name, { count: seeds, pool }) });
  return samples;
}
