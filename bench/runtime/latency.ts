import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@vmwright/runtime';
import type { Row } from '../bar.ts';
import { connect, createSamples, declareSample, sample } from './objects.ts';
import type { Program } from './program.ts';
import { type Bench, SIDES } from './programs.ts';
import { Sample } from './sample.ts';

const FLOOD = Number(process.env.FLOOD ?? 10_000);
const IDLE = { probes: 500, everyMs: 20 };
const FLOODED = { probes: 50, everyMs: 100 };
const WORKERS = 16;

/**
 * Measures the time from an object's event to the start of its reconcile, inside an otherwise idle program. Each
 * program has its own empty namespace. In a shared namespace, the program that runs second would also reconcile the
 * objects of the first program.
 */
export async function* latency({ cluster, programs }: Bench): AsyncGenerator<Row> {
  await using client = await connect(cluster);
  await declareSample(cluster);
  const waits = { ours: [0], theirs: [0] };
  for (const side of SIDES) {
    const namespace = `idle-${side}`;
    await cluster.kubectl(['create', 'namespace', namespace]);
    const probes = 'probe-';
    await using program = programs(side, cluster, {
      job: 'status',
      workers: WORKERS,
      phase: side,
      namespace,
      probes,
    });
    await program.waitForLine('synced');
    waits[side] = await probe(client, program, { ...IDLE, name: probes, namespace });
  }
  const at = (share: number) => ({
    ours: quantile(waits.ours, share),
    theirs: quantile(waits.theirs, share),
  });
  yield { name: 'event to reconcile at rest, p50 (ms)', ...at(0.5) };
  yield { name: 'event to reconcile at rest, p99 (ms)', ...at(0.99), bar: { atMost: 2 } };
}

/**
 * Measures the time from the event of a new object to the start of its reconcile, while the program reconciles all
 * objects of the initial list.
 */
export async function* flood({ cluster, programs }: Bench): AsyncGenerator<Row> {
  await using client = await connect(cluster);
  await declareSample(cluster);
  await createSamples(client, FLOOD);
  const worst = { ours: 0, theirs: 0 };
  for (const side of SIDES) {
    const probes = `probe-${side}-`;
    await using program = programs(side, cluster, {
      job: 'status',
      workers: WORKERS,
      phase: side,
      objects: FLOOD,
      probes,
    });
    await program.waitForLine('first');
    worst[side] = Math.max(...(await probe(client, program, { ...FLOODED, name: probes })));
    const lines = await program.waitForLines(() => true);
    if (lines.includes('last'))
      throw new Error(
        `all objects of the initial list were reconciled before the last probe (side ${side}); increase FLOOD`,
      );
  }
  const name = `new object in a flood of ${FLOOD}, worst of ${FLOODED.probes} (ms)`;
  yield { name, ...worst, bar: { atMost: 100, of: 'ours' } };
}

interface Probes {
  /** Prefix of the names of the probes, which are the objects that the benchmark creates and times. */
  readonly name: string;
  readonly namespace?: string;
  readonly probes: number;
  readonly everyMs: number;
}

/** Creates probe objects and returns the latencies that the program reports for them, in ms. */
async function probe(
  client: Client,
  program: Program,
  { name, namespace, probes, everyMs }: Probes,
): Promise<number[]> {
  for (let i = 0; i < probes; i++) {
    await client.create(Sample, sample(`${name}${i}`, namespace));
    await sleep(everyMs); // one probe every `everyMs`
  }
  const reports = (lines: readonly string[]) => lines.filter((line) => line.startsWith('waited '));
  const lines = await program.waitForLines((all) => reports(all).length >= probes);
  return reports(lines).map((line) => Number(line.split(' ')[1]));
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}
