import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@vmwright/runtime';
import type { Row } from '../bar.ts';
import { connect, createSamples, declareSample } from './objects.ts';
import type { Bench } from './programs.ts';

const SETTLE_MS = 35_000; // longer than the 30 s after which idle connections are closed
const OBSERVE_MS = 30_000;

/** Measures the writes, connections and memory of an idle leader with ten kinds in its caches. */
export async function* rest({ cluster, programs }: Bench): AsyncGenerator<Row> {
  await using client = await connect(cluster);
  await declareSample(cluster);
  await createSamples(client, 100);
  await using program = programs('ours', cluster, { job: 'rest' });
  await program.waitForLine('leads');
  await sleep(SETTLE_MS);
  const before = await writes(client);
  await sleep(OBSERVE_MS);
  const name = (what: string) => `at rest, leading, ten kinds: ${what}`;
  yield { name: name('writes but for the lease'), ours: (await writes(client)) - before, bar: { atMost: 0 } };
  const port = Number(new URL(cluster.access.server).port);
  yield { name: name('connections'), ours: program.connections(port), bar: { atMost: 4 } };
  const { rss, own } = program.usage();
  yield { name: name('memory (MB)'), ours: rss, bar: { atMost: 110 } };
  yield { name: name('memory without the executable (MB)'), ours: own };
}

/**
 * Returns the API server's count of write requests, without those for Leases. The measured program is the only client.
 */
async function writes(client: Client): Promise<number> {
  const metrics = await client.raw('/metrics');
  let sum = 0;
  for (const line of metrics.split('\n')) {
    if (!line.startsWith('apiserver_request_total{')) continue;
    if (!/verb="(POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)"/.test(line)) continue;
    if (line.includes('resource="leases"')) continue;
    sum += Number(line.slice(line.lastIndexOf(' ')));
  }
  return sum;
}
