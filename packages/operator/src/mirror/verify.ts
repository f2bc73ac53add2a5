import { type Access, Client, ForbiddenError, type World, wait } from '@vmwright/runtime';
import { table } from '../table.ts';
import { stateOf } from './mapping.ts';
import { isMirrored } from './plan.ts';
import { PostgresDatabase } from './postgres/database.ts';
import { NAME } from './program.ts';
import { type Row, RowIndex, vmKey } from './rows.ts';
import type { MirrorSettings } from './settings.ts';
import { leanVirtualMachine, VirtualMachine } from './virtual-machine.ts';
import { NEW_ROW_MS } from './vm-rows.ts';

/** A row with a wrong status. It should have the status of its VM, or DELETED if it has no VM. */
export interface Difference {
  /** `namespace/name` of the VM. */
  readonly vm: string;
  readonly rowId: string;
  readonly actual: string;
  readonly expected: string;
}

/** Result of a comparison. */
export interface Verification {
  readonly differences: readonly Difference[];
  /** Namespaces that this program is not allowed to list. Their rows are left out. */
  readonly unlistable: readonly string[];
}

/** Interval between two comparisons. */
const REPEAT_MS = 500;

/**
 * Compares the table with the cluster until they agree or `waitMs` has passed. Writes nothing, so it needs no
 * leadership.
 * @param waitMs maximum time; 0 for a single comparison
 */
export async function verify(
  world: World,
  access: Access,
  settings: MirrorSettings,
  waitMs: number,
  signal: AbortSignal,
): Promise<Verification> {
  const deadline = world.monotonic() + waitMs;
  for (;;) {
    const found = await compareOnce(world, access, settings, signal);
    if (found.differences.length === 0 || world.monotonic() >= deadline) return found;
    await wait(world, REPEAT_MS, signal);
  }
}

async function compareOnce(
  world: World,
  access: Access,
  settings: MirrorSettings,
  signal: AbortSignal,
): Promise<Verification> {
  const { database, namespaces, mapping } = settings;
  const rows = new RowIndex();
  await using session = await new PostgresDatabase({ ...database, clock: world, identity: 'verify' }).open(
    signal,
  );
  // The table is read before the VMs. In the other order, a VM and its row could be created after the VMs were listed;
  // the row would then look like a row without a VM. A VM that changes between the two reads appears as a difference.
  // The difference disappears in a later comparison, after the mirror has written the row.
  for await (const page of session.rows()) for (const row of page) rows.put(row);
  const vms = new Map<string, VirtualMachine>();
  await using client = new Client({ world, access, fieldManager: NAME, userAgent: NAME });
  const unlistable: string[] = [];
  for (const namespace of namespaces ?? [undefined]) {
    try {
      for await (const page of client.pages(VirtualMachine, { namespace, signal }))
        for (const vm of page.items)
          vms.set(`${vm.metadata.namespace}/${vm.metadata.name}`, leanVirtualMachine(vm));
    } catch (error) {
      // As in the mirror, a namespace that cannot be listed is left out, unless it is the only watched namespace.
      if (!(error instanceof ForbiddenError) || namespace === undefined || namespaces?.length === 1)
        throw error;
      unlistable.push(namespace);
    }
  }
  if (unlistable.length > 0 && unlistable.length === namespaces?.length)
    throw new Error(
      `no permission to list VirtualMachines in ${unlistable.join(', ')}; grant it (docs/mirror.md)`,
    );
  const now = world.now();
  const isJudged = ({ namespace, createdAt }: Row) =>
    (namespaces?.includes(namespace) ?? true) &&
    !unlistable.includes(namespace) &&
    now - createdAt >= NEW_ROW_MS; // as in the mirror: the VM may be created up to NEW_ROW_MS after its row
  return { differences: differences(vms, rows, mapping, isJudged), unlistable };
}

/**
 * Returns the rows with another status than their VM. Also returns the rows without a VM that still have a status for
 * existing VMs (`isMirrored`).
 * @param isJudged whether a row must be DELETED if it has no VM in `vms`
 */
export function differences(
  vms: ReadonlyMap<string, VirtualMachine>,
  rows: RowIndex,
  mapping: MirrorSettings['mapping'],
  isJudged: (row: Row) => boolean,
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
    if (!described.has(row.id) && isMirrored(row, mapping) && isJudged(row))
      add(vmKey(row), row, mapping.Deleted);
  return found;
}

/** Prints the result of a comparison. @param program name for messages @returns the exit code */
export function printVerification(program: string, { differences: found, unlistable }: Verification): 0 | 1 {
  for (const namespace of unlistable)
    console.error(
      `${program}: the namespace ${namespace} is left out, because listing its VMs is not permitted`,
    );
  console.log(differenceTable(found));
  return found.length === 0 ? 0 : 1;
}

/** Formats differences as a table. */
export function differenceTable(found: readonly Difference[]): string {
  if (found.length === 0) return 'The table agrees with the cluster.';
  const lines = [
    ['VM', 'ROW', 'IN THE TABLE', 'EXPECTED'],
    ...found.map(({ vm, rowId, actual, expected }) => [vm, rowId, actual || '(empty)', expected]),
  ];
  return table(lines);
}
