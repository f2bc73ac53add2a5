import { startVcsim, type Vcsim } from '@vmwright/testbed';
import type { Row } from '../bar.ts';
import { SIDES, type Side } from '../runtime/programs.ts';
import { median } from '../runtime/throughput.ts';
import { build, type Programs } from './programs.ts';

const MACHINES = 500;
const ROUNDS = Number(process.env.ROUNDS ?? 5);
/** How often each is done in a round. Before, it is done unmeasured: an operator runs for months. */
const ONE = { warm: 1_000, times: 2_000 };
const ALL = { warm: 15, times: 30 };

/**
 * Our client against govmomi, each in a process of its own, on the same vcsim over TLS that is verified, with the same
 * properties. Both read all machines in the way that is usual for either: a view is made, `RetrievePropertiesEx` has
 * them in one answer, the view is destroyed; both end with typed values, not with XML. The time has the server's share
 * in it, which is the same for both and only brings them closer to each other; CPU is each process's own.
 */
export async function* client(): AsyncGenerator<Row> {
  const programs = await build();
  const inventory = { standaloneHosts: 0, vms: MACHINES };
  await using vcsim = await startVcsim({ inventory });
  const one = await rounds(programs, vcsim, { job: 'one', ...ONE });
  yield { name: 'one machine is read, p50 (ms)', ...one('took'), bar: { atMost: 1.1 } };
  yield { name: 'one machine is read: CPU (ms)', ...one('cpu') };
  const all = await rounds(programs, vcsim, { job: 'all', ...ALL });
  yield { name: `${MACHINES} machines are read, p50 (ms)`, ...all('took'), bar: { atMost: 0.7 } };
  yield { name: `${MACHINES} machines are read: CPU (ms)`, ...all('cpu'), bar: { atMost: 0.25 } };
}

interface Measured {
  /** The median of a round. */
  readonly took: number;
  /** Of one reading. */
  readonly cpu: number;
}

/** Each side in turn; gives the medians of the rounds. */
async function rounds(
  programs: Programs,
  vcsim: Vcsim,
  job: { readonly job: string; readonly warm: number; readonly times: number },
) {
  const results: Record<Side, Measured[]> = { ours: [], theirs: [] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of SIDES) {
      await using program = programs(side, vcsim, { ...job, machines: MACHINES });
      const lines = await program.told((all) => all.some((line) => line.startsWith('cpu ')));
      const [, ...took] = lines.find((line) => line.startsWith('took '))?.split(' ') ?? [];
      const [, cpu] = lines.find((line) => line.startsWith('cpu '))?.split(' ') ?? [];
      results[side].push({ took: median(took.map(Number)), cpu: Number(cpu) / job.times });
    }
  }
  return (of: keyof Measured) => ({
    ours: median(results.ours.map((each) => each[of])),
    theirs: median(results.theirs.map((each) => each[of])),
  });
}
