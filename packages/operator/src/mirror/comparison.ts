import { type Clock, wait } from '@vmwright/runtime';
import type { CacheAge } from './cache-age.ts';
import type { Session } from './database.ts';
import { type Plan, rowKey } from './plan.ts';
import { vmKey } from './rows.ts';
import type { VmRows } from './vm-rows.ts';

export interface ComparisonOptions {
  readonly clock: Pick<Clock, 'after'>;
  readonly session: Pick<Session, 'rows'>;
  /** Lists the VMs of the cluster again. */
  readonly refresh: () => Promise<unknown>;
  readonly cacheAge: CacheAge;
  readonly vmRows: VmRows;
  /** Keys of all VMs. */
  readonly keys: () => Iterable<string>;
  /** Whether this replica is responsible for a VM. */
  readonly owns: (key: string) => boolean;
  /** Called for each VM that needs no write. The VM may have a row or not. */
  readonly onSettled: (key: string, plan: Plan) => void;
}

/** Number of VMs or rows that are compared before other work can run. */
const SLICE = 2_000;

/**
 * Reads the whole table and compares it with the whole cluster. If anything differs, lists the cluster, reads the table
 * again, and repeats the comparison (for exceptions, see `CacheAge`):
 * - The cache may lag behind: it may lack the VM of a row, or have an older state than the row. So a VM is known to be
 *   missing only if the cluster was listed after the row was read.
 * - The row of a new VM may have been inserted after the first read. So the newest row of a VM is known only if the
 *   table was read after the VM was listed.
 * @returns the keys of VMs with a row that has another status, and the keys of rows without a VM
 */
export async function compare(options: ComparisonOptions, signal: AbortSignal): Promise<readonly string[]> {
  const { session, vmRows, refresh, cacheAge } = options;
  const read = () => vmRows.read(session.rows());
  const known = await read();
  if (cacheAge === 'stale') {
    await refresh();
    await read();
  }
  const { vms, orphans } = await differingKeys(options, [...options.keys()], known, signal);
  const isDoubtful = orphans.length > 0 || (vms.length > 0 && cacheAge === 'late');
  if (!isDoubtful || cacheAge === 'stale') return [...vms, ...orphans];
  await refresh();
  await read();
  // A change that was not yet written at the first read may have been written since. It is then no longer a difference.
  const remaining = await differingKeys(options, vms, known, signal);
  return [...remaining.vms, ...remaining.orphans];
}

/**
 * @param keys keys of the VMs to compare
 * @param known ids of the rows that were read before the cluster was listed
 */
async function differingKeys(
  options: ComparisonOptions,
  keys: readonly string[],
  known: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<{ readonly vms: readonly string[]; readonly orphans: readonly string[] }> {
  const { clock, vmRows, owns, onSettled } = options;
  const vms: string[] = [];
  const orphans: string[] = [];
  await inSlices(clock, keys, signal, (key) => {
    if (!owns(key)) return;
    const planned = vmRows.plan(key);
    if (planned.writes.length > 0) vms.push(key);
    else onSettled(key, planned);
  });
  await inSlices(clock, [...vmRows.rows.rows()], signal, (row) => {
    if (known.has(row.id) && owns(vmKey(row)) && vmRows.isOrphaned(row)) orphans.push(rowKey(row));
  });
  return { vms, orphans };
}

async function inSlices<T>(
  clock: Pick<Clock, 'after'>,
  items: readonly T[],
  signal: AbortSignal,
  visit: (item: T) => void,
): Promise<void> {
  for (const [at, item] of items.entries()) {
    if (at % SLICE === SLICE - 1) await wait(clock, 0, signal);
    visit(item);
  }
}
