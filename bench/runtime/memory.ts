import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigMap } from '@vmwright/runtime';
import type { Row } from '../bar.ts';
import { connect, createAll, NAMESPACE } from './objects.ts';
import type { Bench, Side } from './programs.ts';

const CACHED = Number(process.env.CACHED ?? 50_000);
const SETTLE_MS = 10_000;

/** Measures the resident memory with many objects of 2.5 KB in the cache. */
export async function* memory({ cluster, programs }: Bench): AsyncGenerator<Row> {
  await using client = await connect(cluster);
  const data = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`key-${i}`, 'v'.repeat(100)]));
  await createAll(client, ConfigMap, CACHED, (i) => ({
    metadata: { namespace: NAMESPACE, name: `c-${i}` },
    data,
  }));
  const hold = async (side: Side, job: string) => {
    await using program = programs(side, cluster, { job });
    await program.waitForLine('synced');
    await sleep(SETTLE_MS); // gives the program time to free the memory that only its startup used
    return program.usage().rss;
  };
  const ours = await hold('ours', 'hold');
  const what = `${CACHED} objects cached`;
  yield {
    name: `${what}, their default cache (MB)`,
    ours,
    theirs: await hold('theirs', 'hold'),
    bar: { atMost: 0.45 },
  };
  yield {
    name: `${what}, their typed cache (MB)`,
    ours,
    theirs: await hold('theirs', 'hold-typed'),
    bar: { atMost: 0.8 },
  };
}
