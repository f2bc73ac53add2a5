import type { ObjectCache, World } from '@vmwright/runtime';
import { isTransient, stateOf } from './mapping.ts';
import {
  type Binding,
  isMirrored,
  type Plan,
  type PlannedWrite,
  type PlanOptions,
  plan,
  rowIdOf,
} from './plan.ts';
import { describes, type Match, type Row, RowIndex, vappOf, vmKey } from './rows.ts';
import { Unmatched } from './unmatched.ts';
import type { VirtualMachine } from './virtual-machine.ts';

/** Time for which a new row without a VM is not changed. Its VM may be created after the row. */
export const NEW_ROW_MS = 60_000;

/** Maximum number of searches for the row of a deleted VM. Together they take about half a minute. */
const MAX_SEARCHES_FOR_DELETED = 5;
/**
 * Maximum number of searches for a VM's own row after the VM took over the row of a predecessor. Together they take
 * about five minutes.
 */
const MAX_SEARCHES_AFTER_TAKE_OVER = 14;

/** Index of the VM cache: VMs by `vapp/name`. */
export const VAPP_INDEX = 'vapp';

/** Returns the index values of a VM for `VAPP_INDEX`. */
export function indexByVapp(vm: VirtualMachine): readonly string[] {
  const vapp = vappOf(vm);
  return vapp === undefined ? [] : [`${vapp}/${vm.metadata.name}`];
}

export interface VmRowsOptions extends PlanOptions {
  readonly world: World;
  readonly vms: ObjectCache<VirtualMachine>;
  /** Watched namespaces. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** Called when a VM begins to have older rows that are not marked as DELETED. */
  readonly onDuplicates: (key: string, row: Row | undefined, older: readonly Row[]) => void;
  /** Called when a VM with a row begins to report a status that the mapping lacks. */
  readonly onUnrecognized: (key: string) => void;
}

/** Changes that occur while the table is read. */
interface Reading {
  /** Ids of rows that were written or found during the read. The read may return older versions of them. */
  readonly touched: Set<string>;
  /** VMs that appeared, or lost their row, during the read. */
  readonly unsearched: Set<string>;
}

/**
 * State of the mirror in memory: the table as last read or written, the row of each VM, and the VMs without a row. Most
 * methods take a key: the key of a VM, or `rowKey` for a row without a VM.
 */
export class VmRows {
  readonly rows = new RowIndex();
  readonly unmatched: Unmatched;
  /** VMs that took over the row of a predecessor. They may get a row of their own later. */
  readonly #takenOver: Unmatched;
  readonly #options: VmRowsOptions;
  readonly #bindings = new Map<string, Binding>();
  /**
   * Time at which a VM began to report a state that may be transient, on the monotonic clock. The map key is that of
   * the VM.
   */
  readonly #transientSince = new Map<string, number>();
  /**
   * Time at which a VM or a row began to wait (see `Plan.isWaiting`), on the monotonic clock. The map key is that of
   * the VM or row that waits.
   */
  readonly #waiting = new Map<string, { readonly uid: string | undefined; readonly since: number }>();
  readonly #duplicates = new Set<string>();
  readonly #unrecognized = new Set<string>();
  /**
   * Last state of deleted VMs with an unknown row, by key of the VM. The row may have been inserted after the table was
   * read, or may still be inserted.
   */
  readonly #deleted = new Map<string, VirtualMachine>();
  /**
   * VMs that appeared or lost their row since the last read of the table began. The table may have a newer row for
   * them.
   */
  #unsearched = new Set<string>();
  #reading: Reading | undefined;

  constructor(options: VmRowsOptions) {
    this.#options = options;
    this.unmatched = new Unmatched(options.world);
    this.#takenOver = new Unmatched(options.world);
  }

  get duplicates(): number {
    return this.#duplicates.size;
  }

  vm(key: string): VirtualMachine | undefined {
    return rowIdOf(key) === undefined ? this.#options.vms.get(key) : undefined;
  }

  /** Decides which statuses to write for a key. */
  plan(key: string): Plan {
    const { world, vms } = this.#options;
    const rowId = rowIdOf(key);
    if (rowId !== undefined) return this.#planRow(key, this.rows.get(rowId));
    const vm = vms.get(key);
    const since = this.#transientSince.get(key) ?? world.monotonic();
    if (vm !== undefined && isTransient(vm, stateOf(vm))) this.#transientSince.set(key, since);
    else this.#transientSince.delete(key);
    const transientForMs = world.monotonic() - since;
    const waitedMs = this.#waitedMs(key, vm?.metadata.uid);
    const observed = { vm, binding: this.#bindings.get(key), rows: this.rows, transientForMs, waitedMs };
    return this.#waits(key, vm?.metadata.uid, plan(observed, this.#options));
  }

  #planRow(key: string, row: Row | undefined): Plan {
    const { world, mapping } = this.#options;
    if (row === undefined || !this.isOrphaned(row))
      return this.#waits(key, undefined, { writes: [], row, duplicates: [] });
    const ageMs = Math.max(world.now() - row.createdAt, this.#waitedMs(key, undefined));
    const againAfterMs = Math.min(NEW_ROW_MS - ageMs, NEW_ROW_MS);
    if (againAfterMs > 0)
      return this.#waits(key, undefined, { writes: [], row, againAfterMs, isWaiting: true, duplicates: [] });
    const write: PlannedWrite = { row, status: mapping.Deleted, state: 'Deleted', uid: undefined };
    return { writes: [write], row, duplicates: [] };
  }

  /**
   * Returns how long a VM or a row has waited (see `Plan.isWaiting`), in milliseconds.
   * @param uid UID of the VM; undefined for the key of a row
   */
  #waitedMs(key: string, uid: string | undefined): number {
    const waiting = this.#waiting.get(key);
    return waiting?.uid === uid && waiting !== undefined
      ? this.#options.world.monotonic() - waiting.since
      : 0;
  }

  /**
   * Whether a VM waits for a row of its own, or before it switches to a newer row. While it waits, the table is
   * searched again before each plan of the VM.
   */
  isWaiting(key: string): boolean {
    return rowIdOf(key) === undefined && this.#waiting.has(key);
  }

  /** Records whether the VM or row of a key waits (see `Plan.isWaiting`), and since when. @returns the given plan */
  #waits(key: string, uid: string | undefined, planned: Plan): Plan {
    const waiting = this.#waiting.get(key);
    // If the plan has writes, the wait ends only when they are committed.
    if (planned.isWaiting !== true && planned.writes.length === 0) this.#waiting.delete(key);
    else if (planned.isWaiting !== true) return planned;
    else if (waiting === undefined || waiting.uid !== uid)
      this.#waiting.set(key, { uid, since: this.#options.world.monotonic() });
    return planned;
  }

  /** Stores which row a planned VM has, if any, and its duplicates. `committed` stores the writes of the plan. */
  settle(key: string, { writes, row, duplicates, isTakeOver }: Plan): void {
    if (rowIdOf(key) !== undefined) return;
    const vm = this.vm(key);
    if (vm === undefined) {
      this.#forget(key);
      if (this.#deleted.has(key)) this.unmatched.add(key);
      if (writes.length === 0) this.#bindings.delete(key);
      return;
    }
    this.#deleted.delete(key);
    if (row === undefined) this.unmatched.add(key);
    else this.unmatched.delete(key);
    if (isTakeOver === true) this.#takenOver.add(key);
    if (row !== undefined && !writes.some((write) => write.row.id === row.id))
      this.#bindings.set(key, { uid: vm.metadata.uid ?? '', rowId: row.id });
    if (row === undefined || stateOf(vm) !== 'Unrecognized') this.#unrecognized.delete(key);
    else if (!this.#unrecognized.has(key)) {
      this.#unrecognized.add(key);
      this.#options.onUnrecognized(key);
    }
    if (duplicates.length === 0) this.#duplicates.delete(key);
    else if (!this.#duplicates.has(key)) {
      this.#duplicates.add(key);
      this.#options.onDuplicates(key, row, duplicates);
    }
  }

  /**
   * Records that the table may have a row for the VM that the mirror has not read. Must be called when a VM was created
   * or re-created.
   */
  created(key: string): void {
    this.#unsearched.add(key);
    this.#reading?.unsearched.add(key);
  }

  /** Stores the last state of a deleted VM, if the row of the VM is not known yet. */
  deleted(key: string, vm: VirtualMachine): void {
    if (this.#bindings.has(key)) return;
    this.#deleted.set(key, vm);
    this.created(key); // so that the table is searched: the row may have been inserted since the last read
  }

  /**
   * Returns whether the table has to be searched for the row of a VM before the VM is planned. Without the search, the
   * VM could get a known row of the same name that belongs to an earlier VM. False for unmatched VMs, because their
   * rows are searched for on a schedule.
   */
  needsSearch(key: string): boolean {
    return this.#unsearched.has(key) && !this.unmatched.has(key) && !this.isBound(key);
  }

  /** Records that the rows of these VMs are searched for. Must be called before the search begins. */
  searching(keys: Iterable<string>): void {
    for (const key of keys) this.#unsearched.delete(key);
  }

  /** Returns whether a VM was deleted before its row was known, and a row that may be its own was found since. */
  isDeletedWithRow(key: string): boolean {
    return this.#deleted.has(key) && this.vm(key) === undefined && this.isMatched(key);
  }

  /**
   * Binds a deleted VM to its row. The caller must list the cluster first: the row may belong to a new VM of the same
   * name that the cache does not contain yet.
   */
  bindDeleted(key: string): void {
    const vm = this.#deleted.get(key);
    if (vm === undefined || this.vm(key) !== undefined) return;
    const match = this.rows.match(vm);
    if (match === undefined) return;
    this.#deleted.delete(key);
    const own = this.#rowOfDeleted(match, vm);
    if (own !== undefined) this.#bindings.set(key, { uid: vm.metadata.uid ?? '', rowId: own.id });
  }

  /**
   * Returns the row of a deleted VM. Considers only rows that were inserted before the deletion. Prefers a row with a
   * status that the mirror writes for existing VMs. If there is no such row, returns the only row. Undefined if several
   * rows are left, because each of them may belong to a VM that is created next.
   */
  #rowOfDeleted({ row, older }: Match, { metadata }: VirtualMachine): Row | undefined {
    const deletedAt = Date.parse(metadata.deletionTimestamp ?? '') || Number.POSITIVE_INFINITY;
    // One second is added, because `deletionTimestamp` has no fraction of a second.
    const rows = [row, ...older].filter(({ createdAt }) => createdAt <= deletedAt + 1_000);
    const shown = rows.find((each) => isMirrored(each, this.#options.mapping));
    return shown ?? (rows.length === 1 ? rows[0] : undefined);
  }

  /** Returns whether a VM has a row that was found or written for it. */
  isBound(key: string): boolean {
    const [binding, vm] = [this.#bindings.get(key), this.vm(key)];
    return binding !== undefined && (vm === undefined || binding.uid === vm.metadata.uid);
  }

  /**
   * Returns whether a row is known for a VM that exists or was deleted. True if the mirror knows no VM with this key.
   */
  isMatched(key: string): boolean {
    const vm = this.vm(key) ?? this.#deleted.get(key);
    return vm === undefined || this.rows.match(vm) !== undefined;
  }

  /** Returns the VMs whose search for a row is due, and schedules their next search. */
  dueSearches(): readonly string[] {
    return [...this.unmatched.due(), ...this.#takenOver.due()];
  }

  /**
   * Evaluates a scheduled search for the row of a VM. Ends the search after a number of attempts if the VM was deleted,
   * or took over the row of a predecessor.
   * @returns whether to plan the VM again, because a row was found
   */
  isFound(key: string): boolean {
    if (this.unmatched.has(key)) {
      if (this.isMatched(key)) return true;
      if (this.unmatched.searches(key) >= MAX_SEARCHES_FOR_DELETED) this.giveUp(key);
      return false;
    }
    const vm = this.vm(key);
    const isNew = vm !== undefined && this.rows.match(vm)?.row.id !== this.#bindings.get(key)?.rowId;
    if (isNew || this.#takenOver.searches(key) >= MAX_SEARCHES_AFTER_TAKE_OVER) this.#takenOver.delete(key);
    return isNew;
  }

  /** Ends the search for the row of a VM if the VM was deleted. */
  giveUp(key: string): void {
    if (this.vm(key) !== undefined) return;
    this.#deleted.delete(key);
    this.unmatched.delete(key);
  }

  /** Drops the state of a VM that does not exist. Keeps its row and its binding. */
  #forget(key: string): void {
    this.unmatched.delete(key);
    this.#takenOver.delete(key);
    this.#transientSince.delete(key);
    this.#duplicates.delete(key);
    this.#unrecognized.delete(key);
  }

  /** Stores a status that was committed, or that the row already had. */
  committed(key: string, { row, status, uid }: PlannedWrite): void {
    this.rows.setStatus(row.id, status);
    this.#reading?.touched.add(row.id);
    const vm = this.vm(key);
    const isOwn = vm !== undefined && this.rows.match(vm)?.row.id === row.id;
    if (isOwn || rowIdOf(key) !== undefined) this.#waiting.delete(key);
    if (uid !== undefined) this.#bindings.set(key, { uid, rowId: row.id });
    else this.#unbind(key, row);
  }

  /** Stores a row that a search found. A known row is not replaced, because a write to that row may be in flight. */
  found(row: Row): void {
    if (this.rows.get(row.id) === undefined) this.rows.put(row);
    this.#reading?.touched.add(row.id);
  }

  /** Drops the state of the matching keys, for shards that this replica no longer owns. Keeps the rows. */
  drop(isDropped: (key: string) => boolean): void {
    for (const map of [this.#bindings, this.#transientSince, this.#deleted, this.#waiting])
      for (const key of [...map.keys()]) if (isDropped(key)) map.delete(key);
    for (const set of [this.#duplicates, this.#unrecognized, this.#unsearched])
      for (const key of [...set]) if (isDropped(key)) set.delete(key);
    for (const searches of [this.unmatched, this.#takenOver])
      for (const key of searches.keys()) if (isDropped(key)) searches.delete(key);
  }

  /** Returns the key of the VM that a key belongs to. For the key of a row, this is the VM that the row describes. */
  vmKeyOf(key: string): string {
    const rowId = rowIdOf(key);
    const row = rowId === undefined ? undefined : this.rows.get(rowId);
    return row === undefined ? key : vmKey(row);
  }

  /** Removes a row that does not exist any more. */
  gone(key: string, row: Row): void {
    this.rows.delete(row.id);
    this.#unbind(key, row);
    if (rowIdOf(key) === undefined) this.created(key); // so that the table is searched: another row may describe the VM
  }

  /**
   * Replaces all known rows by the rows of the table. Keeps rows that are written or found during the read.
   * @returns the ids of the rows that were read
   */
  async read(pages: AsyncIterable<readonly Row[]>): Promise<ReadonlySet<string>> {
    const reading: Reading = { touched: new Set(), unsearched: new Set() };
    const { touched } = reading;
    this.#reading = reading;
    try {
      const seen = new Set<string>();
      for await (const page of pages) {
        for (const row of page) {
          seen.add(row.id);
          if (!touched.has(row.id)) this.rows.put(row);
        }
      }
      for (const { id } of [...this.rows.rows()]) if (!seen.has(id) && !touched.has(id)) this.rows.delete(id);
      this.#unsearched = reading.unsearched;
      return seen;
    } finally {
      this.#reading = undefined;
    }
  }

  /**
   * Returns whether a row has no VM, but a status that the mirror writes for existing VMs. False if the namespace of
   * the row is not watched or cannot be listed.
   */
  isOrphaned(row: Row): boolean {
    const { vms, mapping, namespaces } = this.#options;
    if (!isMirrored(row, mapping)) return false;
    if (row.namespace === '')
      return namespaces === undefined && vms.countByIndex(VAPP_INDEX, `${row.vapp}/${row.vmName}`) === 0;
    const isWatched = namespaces?.includes(row.namespace) ?? true;
    if (!isWatched || vms.unlistable.includes(row.namespace)) return false;
    const vm = vms.get(vmKey(row));
    return vm === undefined || !describes(row, vm);
  }

  #unbind(key: string, { id }: Row): void {
    if (this.#bindings.get(key)?.rowId === id) this.#bindings.delete(key);
  }
}
