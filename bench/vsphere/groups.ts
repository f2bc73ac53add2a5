import { field } from '@vmwright/testbed';
import type { WithVcenter } from '../../packages/operator/test/with-vcenter.ts';
import type { Row } from '../bar.ts';
import { median } from '../runtime/throughput.ts';
import { CLONE_MS, floorOf, LIMIT } from './floor.ts';
import { clear, race } from './race.ts';

const ROUNDS = Number(process.env.ROUNDS ?? 3);

/**
 * Measures the time from the creation of a VmGroup until it reports RUNNING, and compares it with the minimum time for
 * the clones (`floorOf`). Also counts the calls that vCenter receives in that time, including those of the property
 * collector.
 */
export async function* replicas(bench: WithVcenter): AsyncGenerator<Row> {
  for (const wanted of [30, 50]) {
    const seconds: number[] = [];
    const calls: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const name = `of-${wanted}-${round}`;
      await bench.vcsim.control.resetCalls();
      const times = await race(bench, { [name]: wanted });
      calls.push((await callsOf(bench)) / wanted);
      seconds.push(times.get(name)?.done ?? Number.NaN);
      await verify(bench, wanted);
      await clear(bench, [name]);
    }
    const what = `VmGroup of ${wanted}`;
    yield { name: `${what}: RUNNING (s)`, ...against(wanted, seconds), bar: { atMost: 1.15 } };
    yield { name: `${what}: vCenter calls a replica`, ours: median(calls), bar: { atMost: 3 } };
  }
}

const MANY = { groups: 20, replicas: 3 };

/**
 * Measures the total time and the fairness for many groups that are created together. A fair limiter lets every group
 * clone its first machine before any group clones a second. So every group has a machine after as many clones as there
 * are groups. An unfair limiter could serve one group after the other. The last group would then wait for all clones of
 * the 19 other groups.
 */
export async function* many(bench: WithVcenter): AsyncGenerator<Row> {
  const { groups, replicas } = MANY;
  const total = groups * replicas;
  const [all, first, calls]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < ROUNDS; round++) {
    const names = Array.from({ length: groups }, (_, i) => `many-${round}-${i}`);
    await bench.vcsim.control.resetCalls();
    const times = [
      ...(await race(bench, Object.fromEntries(names.map((name) => [name, replicas])))).values(),
    ];
    calls.push((await callsOf(bench)) / total);
    all.push(Math.max(...times.map(({ done }) => done)));
    first.push(Math.max(...times.map((time) => time.first)));
    await verify(bench, total);
    await clear(bench, names);
  }
  const what = `${groups} VmGroups of ${replicas} at once`;
  yield { name: `${what}: all RUNNING (s)`, ...against(total, all), bar: { atMost: 1.15 } };
  yield { name: `${what}: each has a machine (s)`, ...against(groups, first), bar: { atMost: 1.5 } };
  yield { name: `${what}: vCenter calls a replica`, ours: median(calls) };
}

const [SMALL, BIG] = [2, 200];

/**
 * Measures how long a small group takes if a big group already uses all permits of the limiter. With a fair limiter,
 * the small group waits for the clones in flight and then gets the next two permits. This takes at most the time of two
 * clones. Without fairness, the small group would wait half a minute for the clones of the big group.
 */
export async function* beside(bench: WithVcenter): AsyncGenerator<Row> {
  const seconds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const [big, small] = [`big-${round}`, `small-${round}`];
    await bench.group(big, { replicas: BIG });
    await bench.until(big, (group) => Number(field(group, 'status', 'readyReplicas')) > LIMIT);
    const times = await race(bench, { [small]: SMALL });
    seconds.push(times.get(small)?.done ?? Number.NaN);
    await clear(bench, [big, small]);
  }
  const fair = (2 * CLONE_MS) / 1000;
  yield {
    name: `VmGroup of ${SMALL} beside one of ${BIG}: RUNNING (s)`,
    ours: median(seconds),
    theirs: fair,
    bar: { atMost: 1.5 },
  };
}

function against(machines: number, seconds: readonly number[]) {
  return { ours: median(seconds), theirs: floorOf(machines) };
}

async function callsOf({ vcsim }: WithVcenter): Promise<number> {
  return Object.values(await vcsim.control.calls()).reduce((sum, count) => sum + count, 0);
}

/** Checks in vCenter that the machines are running, independently of the status of the groups. */
async function verify(bench: WithVcenter, wanted: number): Promise<void> {
  const running = (await bench.machines()).filter(({ power }) => power === 'poweredOn').length;
  if (running !== wanted) throw new Error(`${running} machines are running instead of ${wanted}`);
}
