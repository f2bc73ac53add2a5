import { nodeWorld, WorkQueue } from '@vmwright/runtime';
import type { Row } from '../bar.ts';

const KEYS = 10_000;
const ROUNDS = 200;

/** Measures the throughput of the work queue. */
export function queue(): Row {
  const work = new WorkQueue({ clock: nodeWorld });
  const keys = Array.from({ length: KEYS }, (_, i) => `namespace-${i % 100}/object-${i}`);
  const started = performance.now();
  for (let round = 0; round < ROUNDS; round++) {
    for (const key of keys) work.add(key);
    for (let item = work.tryTake(); item !== undefined; item = work.tryTake()) work.done(item.key);
  }
  const perSecond = (ROUNDS * KEYS) / ((performance.now() - started) / 1000);
  return { name: 'queue: add, get, done (M/s)', ours: perSecond / 1e6, bar: { atLeast: 1 } };
}
