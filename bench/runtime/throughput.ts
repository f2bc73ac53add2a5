import type { Client } from '@vmwright/runtime';
import type { Row } from '../bar.ts';
import { connect, createSamples, declareSample } from './objects.ts';
import { type Bench, SIDES, type Side } from './programs.ts';
import { Sample } from './sample.ts';

const COUNTS = (process.env.OBJECTS ?? '3000,10000').split(',').map(Number);
const WORKERS = [1, 16, 64];
/**
 * Number of measurements per side. The sides alternate, and their medians are compared, because other processes share
 * the machine.
 */
const ROUNDS = Number(process.env.ROUNDS ?? 3);

/**
 * Measures how fast a program sets the status of every object once. The rate is measured from the first to the last
 * object. CPU time and memory are measured from the start of the program. Each run creates new objects in a new
 * namespace, so that all runs start from the same state.
 */
export async function* throughput({ cluster, programs }: Bench): AsyncGenerator<Row> {
  await using client = await connect(cluster);
  await declareSample(cluster);
  let runs = 0;
  const measureRun = async (side: Side, workers: number, objects: number, job = 'status') => {
    const namespace = `run-${runs++}`;
    await cluster.kubectl(['create', 'namespace', namespace]);
    await createSamples(client, objects, namespace);
    await using program = programs(side, cluster, {
      job,
      workers,
      namespace,
      phase: side,
      objects,
    });
    await program.waitForLine('first');
    const first = performance.now();
    await program.waitForLine('last');
    const seconds = (performance.now() - first) / 1000;
    const usage = program.usage();
    await verify(client, namespace, side, objects);
    return { rate: objects / seconds, ...usage };
  };
  await measureRun('ours', 16, 3000); // warms up the API server
  for (const objects of COUNTS) {
    for (const workers of WORKERS) {
      const results: Record<Side, Measured[]> = { ours: [], theirs: [] };
      const bare: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        for (const side of SIDES) results[side].push(await measureRun(side, workers, objects));
        bare.push((await measureRun('ours', workers, objects, 'bare')).rate);
      }
      const compare = (of: keyof Measured) => ({
        ours: median(results.ours.map((each) => each[of])),
        theirs: median(results.theirs.map((each) => each[of])),
      });
      const what = `${objects} objects, ${workers} ${workers === 1 ? 'worker' : 'workers'}`;
      // With several workers, the API server limits the rate, so the bar applies to our rate divided by the rate of
      // bare requests.
      const isAtLimit = workers > 1;
      const { ours } = compare('rate');
      yield {
        name: `${what}: reconciles (1/s)`,
        ...compare('rate'),
        ...(!isAtLimit && { bar: { atLeast: 1.5 } }),
      };
      yield {
        name: `${what}: of bare requests (1/s)`,
        ours,
        theirs: median(bare),
        ...(isAtLimit && { bar: { atLeast: 0.9 } }),
      };
      yield {
        name: `${what}: CPU (s)`,
        ...compare('cpu'),
        ...(workers <= 16 && { bar: { atMost: 0.6 } }),
      };
      yield {
        name: `${what}: memory (MB)`,
        ...compare('rss'),
        ...(objects === 3_000 && { bar: { atMost: 1.2 } }),
      };
      yield { name: `${what}: memory without the executable (MB)`, ...compare('own') };
    }
  }
}

interface Measured {
  readonly rate: number;
  readonly cpu: number;
  readonly rss: number;
  readonly own: number;
}

/** Checks in the cluster that every object has the status, independently of the program's report. */
async function verify(client: Client, namespace: string, phase: string, objects: number): Promise<void> {
  let updated = 0;
  for await (const { items } of client.pages(Sample, { namespace }))
    updated += items.filter(({ status }) => status?.phase === phase).length;
  if (updated < objects) throw new Error(`only ${updated} of ${objects} objects have the status ${phase}`);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
