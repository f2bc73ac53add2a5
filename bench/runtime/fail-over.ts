import { setTimeout as sleep } from 'node:timers/promises';
import type { Row } from '../bar.ts';
import { connect, createSamples, declareSample } from './objects.ts';
import { type Bench, SIDES, type Side } from './programs.ts';

const ROUNDS = 3;

/**
 * Measures the time from the end of the leader's process until the standby leads, with the default settings: lease
 * duration 15 s, renew deadline 10 s, retry period 2 s.
 */
export async function* failOver({ cluster, programs }: Bench): AsyncGenerator<Row> {
  await using client = await connect(cluster);
  await declareSample(cluster);
  await createSamples(client, 100);
  const seconds = async (side: Side, signal: 'SIGTERM' | 'SIGKILL', round: number) => {
    await using leader = programs(side, cluster, { job: 'lead' });
    await leader.waitForLine('leads');
    await using standby = programs(side, cluster, { job: 'lead' });
    await standby.waitForLine('synced');
    await sleep(2_000 + round * 700); // each round ends the leader at a different moment of the standby's retry period
    const started = performance.now();
    await leader.end(signal);
    await standby.waitForLine('leads');
    return (performance.now() - started) / 1000;
  };
  for (const [signal, what, atMost] of [
    ['SIGTERM', 'a clean stop', 4],
    ['SIGKILL', 'a kill', 20],
  ] as const) {
    const worst = { ours: 0, theirs: 0 };
    for (const side of SIDES)
      for (let round = 0; round < ROUNDS; round++)
        worst[side] = Math.max(worst[side], await seconds(side, signal, round));
    yield { name: `fail-over after ${what}, worst of ${ROUNDS} (s)`, ...worst, bar: { atMost, of: 'ours' } };
  }
}
