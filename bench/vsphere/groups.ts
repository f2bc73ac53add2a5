import { field } from '@vmwright/testbed';
import type { WithVcenter } from '../../packages/operator/test/with-vcenter.ts';
import type { Row } from '../bar.ts';
import { median } from '../runtime/throughput.ts';
import { CLONE_MS, floorOf, LIMIT } from './floor.ts';
import { clear, race } from './race.ts';

const ROUNDS = Number(process.env.ROUNDS ?? 3);

/**
 * How long a group takes from its creation until it says that it runs, against clones alone; and how often vCenter is
 * asked meanwhile, by its own count. Looking for changes counts as asking.
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
 * Many groups at once: what they take together, and whether they get on together. With fair turns each has a machine
 * before any has a second, so that the last first machine is there when as many clones are done as there are groups. Where
 * groups are served one after the other, it is there at the very end: after 19 groups of 3, in place of 19 machines.
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
    first.push(Math.max(...times.map((its) => its.first)));
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
 * A small group that comes while a big one has vCenter as busy as it may be. With a fair share it waits until what is
 * under way is done, and then has two of the three turns, or its two one right after the other where they are not free at
 * the same moment: two clones' time at most, in place of the half minute that the big one takes.
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

/** Groups say themselves when they are done; vCenter shows whether it is so. */
async function verify(bench: WithVcenter, wanted: number): Promise<void> {
  const running = (await bench.machines()).filter(({ power }) => power === 'poweredOn').length;
  if (running !== wanted) throw new Error(`${running} machines run in place of ${wanted}`);
}
