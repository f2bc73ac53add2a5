import type { Row } from '../bar.ts';
import { SIDES, type Side } from '../runtime/programs.ts';
import { median } from '../runtime/throughput.ts';
import { type Environment, RUNNING, STALE, startEnvironment, untilAll } from './bench.ts';
import { listVms } from './machines.ts';
import type { Programs } from './programs.ts';

const COUNTS = (process.env.VMS ?? '2000,10000').split(',').map(Number);
const ROUNDS = Number(process.env.ROUNDS ?? 3);
const RATE_BAR = { atLeast: 10 };
const LIST_BAR = { atMost: 2 };

/**
 * Measures the time from the start of a controller until the rows of all VMs are correct. Also measures its CPU time
 * and memory. All rows are stale at the start. The time includes the start of the process, the leader election and the
 * list of the VMs. Our controller and the comparator get the same VMs, the same table and a released Lease.
 *
 * A bare list of the VMs, by a process that already runs, is the lower limit of the time. A controller has to read the
 * last VM before it can write the last row.
 */
export async function* endToEnd(programs: Programs): AsyncGenerator<Row> {
  for (const vms of COUNTS) {
    await using environment = await startEnvironment(vms, 'usual');
    await measureRun(programs, environment, 'ours', vms); // warms up the API server and the database
    const results: Record<Side, Measured[]> = { ours: [], theirs: [] };
    const lists: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of SIDES) results[side].push(await measureRun(programs, environment, side, vms));
      lists.push(await listVms(environment.client));
    }
    const compare = (of: keyof Measured) => ({
      ours: median(results.ours.map((each) => each[of])),
      theirs: median(results.theirs.map((each) => each[of])),
    });
    const list = median(lists);
    // RATE_BAR requires ten times the rate of the comparator. No controller is faster than a bare list of the VMs. So
    // RATE_BAR cannot be met if the bare list takes more than a tenth of the comparator's time. LIST_BAR then applies.
    const isListTheLimit = compare('last').theirs / list < RATE_BAR.atLeast;
    yield {
      name: `${vms} VMs, start to last row: rate (rows/s)`,
      ...compare('rate'),
      ...(!isListTheLimit && { bar: RATE_BAR }),
    };
    yield { name: `${vms} VMs, start to last row (s)`, ...compare('last') };
    yield { name: `${vms} VMs, start to first row (s)`, ...compare('first') };
    yield {
      name: `${vms} VMs, start to last row: of a bare list (s)`,
      ours: compare('last').ours,
      theirs: list,
      ...(isListTheLimit && { bar: LIST_BAR }),
    };
    yield { name: `${vms} VMs, start to last row: CPU (s)`, ...compare('cpu') };
    yield { name: `${vms} VMs, start to last row: memory (MB)`, ...compare('rss') };
  }
}

interface Measured {
  readonly rate: number;
  readonly first: number;
  readonly last: number;
  readonly cpu: number;
  readonly rss: number;
}

async function measureRun(
  { controllers }: Programs,
  { cluster, table }: Environment,
  side: Side,
  vms: number,
): Promise<Measured> {
  await table.reset(STALE);
  const start = await controllers(side, cluster, table);
  const started = Date.now();
  await using program = start();
  await untilAll(program, table, vms, RUNNING.row);
  const { cpu, rss } = program.usage();
  const { first, last } = await table.commits();
  const seconds = (at: number) => (at - started) / 1000;
  return { rate: vms / seconds(last), first: seconds(first), last: seconds(last), cpu, rss };
}
