import { startVcsim, type Vcsim } from '@vmwright/testbed';
import type { Row } from '../bar.ts';
import { SIDES, type Side } from '../runtime/programs.ts';
import { median } from '../runtime/throughput.ts';
import { build, type Programs } from './programs.ts';

const MACHINES = 500;
const ROUNDS = Number(process.env.ROUNDS ?? 5);
/**
 * Numbers of warm-up reads and of measured reads per round. A warm process is the representative case, because an
 * operator runs for months.
 */
const ONE = { warm: 1_000, times: 2_000 };
const ALL = { warm: 15, times: 30 };

/**
 * Compares our client with govmomi. Each runs in its own process and reads the same properties from the same vcsim over
 * verified TLS. Both read all machines in the idiomatic way: create a view, call `RetrievePropertiesEx` once, destroy
 * the view. Both decode the result to typed values.
 *
 * The time includes the server's share, which is the same for both and brings the ratio closer to 1. The CPU time is
 * that of the client process only.
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
  /** Median duration of a read in a round, in ms. */
  readonly took: number;
  /** CPU time of a read, in ms. */
  readonly cpu: number;
}

/** Measures both sides alternately and returns the medians of the rounds. */
async function rounds(
  programs: Programs,
  vcsim: Vcsim,
  job: { readonly job: string; readonly warm: number; readonly times: number },
) {
  const results: Record<Side, Measured[]> = { ours: [], theirs: [] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of SIDES) {
      await using program = programs(side, vcsim, { ...job, machines: MACHINES });
      const lines = await program.waitForLines((all) => all.some((line) => line.startsWith('cpu ')));
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
