import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Table, TableRow } from '../database/table.ts';
import { describes } from './timeline.ts';
import { SimulatedVm, statusOf, type Words } from './virtual-machine.ts';

/** A row and the status that it must have. The status is undefined if any status is correct. */
export interface Expectation {
  readonly row: TableRow;
  readonly vm: StoredObject | undefined;
  readonly status: string | undefined;
}

/** Yields the status that each live row must have according to the VMs in the cluster. */
export function* expectations(
  server: ApiServer,
  table: Table,
  words: Words,
): Generator<Expectation, void, undefined> {
  const rows = table.all().filter(({ deletedAt, vmName }) => deletedAt === null && vmName !== null);
  const vms = [...server.objects(SimulatedVm)];
  for (const row of rows) {
    const vm = vms.find((each) => describes(row, each));
    if (vm === undefined) {
      yield { row, vm, status: isMirrored(row, words) ? words.Deleted : undefined };
      continue;
    }
    // If several rows match a VM, the newest one shows the VM, and the others show earlier VMs of the same name.
    const isNewest = rows
      .filter((each) => describes(each, vm))
      .every((each) => each === row || isNewer(row, each));
    const older = isMirrored(row, words) ? words.Deleted : undefined;
    yield { row, vm, status: isNewest ? statusOf(vm, words) : older };
  }
}

/** Whether the row has a status that the mirror writes. Such a row counts as the row of a VM that exists or existed. */
export function isMirrored({ status }: TableRow, words: Words): boolean {
  return status !== null && Object.values(words).includes(status);
}

/** Whether row `a` was inserted after row `b`. */
export function isNewer(a: TableRow, b: TableRow): boolean {
  const [first, second] = [a.createdAt ?? 0, b.createdAt ?? 0];
  return first === second ? a.id > b.id : first > second;
}
