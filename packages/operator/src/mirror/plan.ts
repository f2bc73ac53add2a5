import { isTransient, type StatusMapping, stateOf, type VmState } from './mapping.ts';
import type { Row, RowIndex } from './rows.ts';
import type { VirtualMachine } from './virtual-machine.ts';

/** Links a VM to its row: the row that was last written for the VM, or a row that already had the right status. */
export interface Binding {
  readonly uid: string;
  readonly rowId: string;
}

/** State that the plan for the row of a VM is based on. */
export interface Observed {
  /** The VM; undefined if it does not exist. */
  readonly vm: VirtualMachine | undefined;
  readonly binding: Binding | undefined;
  readonly rows: Pick<RowIndex, 'match' | 'get'>;
  /** Time for which the VM has been in a state that may be transient, in milliseconds. */
  readonly transientForMs: number;
  /** Time for which the VM has waited, in milliseconds; see `Plan.isWaiting`. */
  readonly waitedMs: number;
}

export interface PlanOptions {
  readonly mapping: StatusMapping;
  /** Time after which a state that may be transient is written. */
  readonly settlingMs: number;
  /**
   * Time that a re-created VM waits for a row of its own; then it takes over the row of its predecessor. SSVirt,
   * which manages the table, may insert the new row some time after it creates the VM.
   */
  readonly claimMs: number;
}

/** A status to write, and the VM that it comes from. */
export interface PlannedWrite {
  readonly row: Row;
  readonly status: string;
  readonly state: VmState;
  /** UID of the VM; undefined if the row has no VM any more. */
  readonly uid: string | undefined;
}

export interface Plan {
  readonly writes: readonly PlannedWrite[];
  /** The row that describes the VM; undefined if the VM does not exist, or if no row of the VM is known. */
  readonly row: Row | undefined;
  /** Time after which the VM must be planned again. */
  readonly againAfterMs?: number;
  /**
   * Whether a VM or a row waits. There are three cases:
   * - A re-created VM waits for a row of its own.
   * - A VM waits before it switches to a newer row.
   * - A new row without a VM waits for its VM.
   *
   * The wait is measured on the monotonic clock, because the clocks of this replica, the API server and SSVirt can
   * differ.
   */
  readonly isWaiting?: boolean;
  /**
   * Whether the VM takes over the row of its predecessor, a deleted VM of the same name. SSVirt may still insert a new
   * row for the VM later.
   */
  readonly isTakeOver?: boolean;
  /** Older rows that describe the same VM and are not marked as deleted. */
  readonly duplicates: readonly Row[];
}

const NOTHING: Plan = { writes: [], row: undefined, duplicates: [] };

/**
 * Decides which statuses to write for a VM. Uses only the newest known state, so late and repeated events cannot revert
 * a row.
 */
export function plan(observed: Observed, options: PlanOptions): Plan {
  const { vm, binding, rows } = observed;
  const { mapping } = options;
  const bound = binding && rows.get(binding.rowId);
  const isSuccessor = binding !== undefined && binding.uid !== vm?.metadata.uid;
  const predecessor = isSuccessor && bound !== undefined && bound.status !== mapping.Deleted ? [bound] : [];
  const match = vm && rows.match(vm);
  if (vm === undefined || match === undefined)
    return { ...NOTHING, writes: predecessor.map(toDeleted(mapping)) };
  const claimInMs = options.claimMs - observed.waitedMs;
  // When a newer row appears, the VM keeps its row for `claimMs`. The newer row usually belongs to a VM that will be
  // created under the same name after this VM is deleted.
  const keepsRow = !isSuccessor && bound !== undefined && bound !== match.row && claimInMs > 0;
  const row = keepsRow ? bound : match.row;
  const older = match.older.filter((each) => each !== row);
  const duplicates = older.filter(({ status }) => status !== mapping.Deleted);
  // Rows to mark as DELETED. If an older row has a status that the mirror writes for existing VMs, it has had a VM.
  // That VM no longer exists, because names of VMs are unique.
  const stale = new Set([...predecessor, ...older.filter((each) => isMirrored(each, mapping))]);
  // Whether the row belongs to a deleted VM of the same name. If so, the new VM waits for a row of its own: SSVirt
  // usually inserts one, but may do so after it creates the VM.
  const isPredecessors = isSuccessor
    ? row === bound
    : binding === undefined && row.status === mapping.Deleted;
  if (isPredecessors && claimInMs > 0) {
    const writes = [...stale].map(toDeleted(mapping));
    return { writes, row: undefined, againAfterMs: claimInMs, isWaiting: true, duplicates };
  }
  const others = [...stale].filter((each) => each !== row).map(toDeleted(mapping));
  const toWrite = (state: VmState): readonly PlannedWrite[] =>
    row.status === mapping[state]
      ? others
      : [...others, { row, status: mapping[state], state, uid: vm.metadata.uid ?? '' }];
  const state = stateOf(vm);
  const settlesInMs = options.settlingMs - observed.transientForMs;
  const waiting = keepsRow ? { isWaiting: true, againAfterMs: claimInMs } : {};
  const takeOver = isPredecessors ? { isTakeOver: true } : {};
  if (!isTransient(vm, state) || settlesInMs <= 0)
    return { writes: toWrite(state), row, duplicates, ...waiting, ...takeOver };
  const isShown = binding?.uid === vm.metadata.uid && isMirrored(row, mapping);
  return {
    // While Stopped may be transient, a row that was not yet written for this VM gets the status of a starting VM.
    writes: isShown || row.status === mapping[state] ? others : toWrite('NewRunning'),
    row,
    duplicates,
    ...waiting,
    ...takeOver,
    againAfterMs: keepsRow ? Math.min(settlesInMs, claimInMs) : settlesInMs,
  };
}

/**
 * Returns whether a row has a status that the mirror writes for an existing VM. False for DELETED. Also false for a
 * status that the mirror never writes, such as INSTANTIATING: such a row has not had a VM yet.
 */
export function isMirrored({ status }: Row, mapping: StatusMapping): boolean {
  return status !== mapping.Deleted && Object.values(mapping).includes(status);
}

function toDeleted(mapping: StatusMapping): (row: Row) => PlannedWrite {
  return (row) => ({ row, status: mapping.Deleted, state: 'Deleted', uid: undefined });
}

/** Queue key of a row that has no VM. It begins with a slash, which keys of VMs never do. */
export function rowKey({ id }: Pick<Row, 'id'>): string {
  return `/${id}`;
}

/** Returns the id of a row from its key; undefined for the key of a VM. */
export function rowIdOf(key: string): string | undefined {
  return key.startsWith('/') ? key.slice(1) : undefined;
}
