import { type Access, Client, type World, wait } from '@vmwright/runtime';
import { stateOf } from './mapping.ts';
import { isMirrored } from './plan.ts';
import { PostgresDatabase } from './postgres/database.ts';
import { NAME } from './program.ts';
import { type Row, RowIndex, vmKey } from './rows.ts';
import type { MirrorSettings } from './settings.ts';
import { leanVirtualMachine, VirtualMachine } from './virtual-machine.ts';

/** A row whose status is not that of its VM. */
export interface Difference {
  /** `namespace/name` of the VM. */
  readonly vm: string;
  readonly rowId: string;
  readonly actual: string;
  readonly expected: string;
}

/** Interval between two comparisons. */
const REPEAT_MS = 500;

/**
 * Compares cluster and table until they agree or the time is over. Reads only, and needs no leadership.
 * @param waitMs maximum time; 0 for a single comparison
 */
export async function verify(
  world: World,
  access: Access,
  settings: MirrorSettings,
  waitMs: number,
  signal: AbortSignal,
): Promise<readonly Difference[]> {
  const deadline = world.monotonic() + waitMs;
  for (;;) {
    const found = await compareOnce(world, access, settings, signal);
    if (found.length === 0 || world.monotonic() >= deadline) return found;
    await wait(world, REPEAT_MS, signal);
  }
}

async function compareOnce(
  world: World,
  access: Access,
  settings: MirrorSettings,
  signal: AbortSignal,
): Promise<readonly Difference[]> {
  const { database, namespaces, mapping } = settings;
  const rows = new RowIndex();
  await using session = await new PostgresDatabase({
    ...{ ...database, clock: world, identity: 'verify' },
  }).open(signal);
  // The table first: a VM that changes in between then shows as a difference only until the mirror has written it.
  for await (const page of session.rows()) for (const row of page) rows.put(row);
  const vms = new Map<string, VirtualMachine>();
  await using client = new Client({ world, access, fieldManager: NAME, userAgent: NAME });
  for (const namespace of namespaces ?? [undefined])
    for await (const page of client.pages(VirtualMachine, {
      ...(namespace !== undefined && { namespace }),
      signal,
    }))
      for (const vm of page.items)
        vms.set(`${vm.metadata.namespace}/${vm.metadata.name}`, leanVirtualMachine(vm));
  return differences(vms, rows, mapping, (row) => namespaces?.includes(row.namespace) ?? true);
}

/** Returns the rows whose status is not that of their VM. @param isWatched whether the VM of a row would be in `vms` */
export function differences(
  vms: ReadonlyMap<string, VirtualMachine>,
  rows: RowIndex,
  mapping: MirrorSettings['mapping'],
  isWatched: (row: Row) => boolean,
): readonly Difference[] {
  const found: Difference[] = [];
  const add = (vm: string, row: Row, expected: string) =>
    found.push({ vm, rowId: row.id, actual: row.status, expected });
  const described = new Set<string>();
  for (const [key, vm] of vms) {
    const match = rows.match(vm);
    if (match === undefined) continue;
    described.add(match.row.id);
    const expected = mapping[stateOf(vm)];
    if (match.row.status !== expected) add(key, match.row, expected);
  }
  for (const row of rows.rows())
    if (!described.has(row.id) && isMirrored(row, mapping) && isWatched(row))
      add(vmKey(row), row, mapping.Deleted);
  return found;
}

/** Formats differences as a table. */
export function differenceTable(found: readonly Difference[]): string {
  if (found.length === 0) return 'The table agrees with the cluster.';
  const lines = [
    ['VM', 'ROW', 'IN THE TABLE', 'EXPECTED'],
    ...found.map(({ vm, rowId, actual, expected }) => [vm, rowId, actual || '(empty)', expected]),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
    .join('\n');
}
