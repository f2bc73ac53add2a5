import type { Client } from '@vmwright/runtime';
import type { Row } from '../bar.ts';
import { connect, createSamples, declareSample } from './objects.ts';
import { type Bench, SIDES, type Side } from './programs.ts';
import { Sample } from './sample.ts';

const COUNTS = (process.env.OBJECTS ?? '3000,10000').split(',').map(Number);
const WORKERS = [1, 16, 64];
/** Each side is measured so often, in turn, and the medians are compared: the machine is never quite alone. */
const ROUNDS = Number(process.env.ROUNDS ?? 3);

/**
 * Every object is given a status: how many a second, from the first to the last, and what that costs from start to end.
 * Objects are new each time, in a namespace of their own, so that all runs find the same.
 */
export async function* throughput({ cluster, programs }: Bench): AsyncGenerator<Row> {
  await using client = await connect(cluster);
  await declareSample(cluster);
  let runs = 0;
  const giveStatus = async (side: Side, workers: number, objects: number, job = 'status') => {
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
    await program.tells('first');
    const first = performance.now();
    await program.tells('last');
    const seconds = (performance.now() - first) / 1000;
    const usage = program.usage();
    await verify(client, namespace, side, objects);
    return { rate: objects / seconds, ...usage };
  };
  await giveStatus('ours', 16, 3000); // Node keeps what it has compiled
  for (const objects of COUNTS) {
    for (const workers of WORKERS) {
      const results: Record<Side, Measured[]> = { ours: [], theirs: [] };
      const bare: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        for (const side of SIDES) results[side].push(await giveStatus(side, workers, objects));
        bare.push((await giveStatus('ours', workers, objects, 'bare')).rate);
      }
      const compare = (of: keyof Measured) => ({
        ours: median(results.ours.map((each) => each[of])),
        theirs: median(results.theirs.map((each) => each[of])),
      });
      const what = `${objects} objects, ${workers} ${workers === 1 ? 'worker' : 'workers'}`;
      yield { name: `${what}: reconciles (1/s)`, ...compare('rate'), bar: { atLeast: 1.5 } };
      // How far it could go at all: where the API server is at its limit, no client is faster.
      const { ours } = compare('rate');
      yield { name: `${what}: of bare requests (1/s)`, ours, theirs: median(bare) };
      yield { name: `${what}: CPU (s)`, ...compare('cpu'), bar: { atMost: 0.6 } };
      yield { name: `${what}: memory (MB)`, ...compare('rss') };
    }
  }
}

interface Measured {
  readonly rate: number;
  readonly cpu: number;
  readonly rss: number;
}

/** Programs say themselves when they are done; the objects show whether it is so. */
async function verify(client: Client, namespace: string, phase: string, objects: number): Promise<void> {
  let given = 0;
  for await (const { items } of client.pages(Sample, { namespace }))
    given += items.filter(({ status }) => status?.phase === phase).length;
  if (given < objects) throw new Error(`${given} of ${objects} objects have the status ${phase}`);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
