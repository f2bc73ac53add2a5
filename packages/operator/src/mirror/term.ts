import {
  type CacheEvent,
  LOW,
  messageOf,
  NORMAL,
  type ObjectCache,
  type RunnableContext,
  WorkQueue,
  wait,
} from '@vmwright/runtime';
import { type WriteResult, writeBatch } from './batch.ts';
import { DatabaseError, type Session } from './database.ts';
import { DatabaseLink } from './database-link.ts';
import type { DeadLetters } from './dead-letters.ts';
import { isTransient, stateOf } from './mapping.ts';
import type { Trigger } from './metrics.ts';
import type { MirrorOptions } from './mirror.ts';
import { type Binding, isMirrored, type Plan, type PlannedWrite, plan, rowIdOf, rowKey } from './plan.ts';
import type { Reporter } from './reporter.ts';
import { describes, type Row, RowIndex, vmKey } from './rows.ts';
import { Unmatched } from './unmatched.ts';
import type { VirtualMachine } from './virtual-machine.ts';

/** Interval at which rows are searched for, shards are acquired, and the time of the next resync is checked. */
const TICK_MS = 500;
/** Maximum number of names in one search. */
const SEARCH_NAMES = 10_000;
/** Number of objects or rows that a comparison handles before it lets other work run. */
const SLICE = 2_000;
/** Shard of all rows if the work is not sharded. */
const ONLY_SHARD = 0;
/** Time for which a new row without a VM is left alone, because its VM may be created after it. */
const NEW_ROW_MS = 60_000;
/** Time for which changes are collected before a batch is written. */
const COLLECT_MS = 3;
const MAX_BATCH_ROWS = 2_500;
/** Pause after a failure that is not the database's, such as a lost leadership before the signal aborts. */
const RETRY_MS = 1_000;

/** A planned write with the key that it was planned for. */
interface KeyedWrite extends PlannedWrite {
  readonly key: string;
}

export interface TermOptions extends MirrorOptions {
  readonly vms: ObjectCache<VirtualMachine>;
  readonly context: RunnableContext;
  readonly reporter: Reporter;
  readonly deadLetters: DeadLetters;
}

/**
 * One leadership term of the mirror, with all its state in memory. The next term starts empty, because another replica may
 * have written rows in between.
 *
 * Flow: a change of a VM enqueues its key; a worker collects the keys of a few milliseconds, plans their rows from the
 * newest known state of each VM, and writes them in one statement. Whenever a session with the database is opened, the
 * whole table is compared with the whole cluster first.
 */
export class Term {
  readonly #options: TermOptions;
  readonly #queue: WorkQueue;
  readonly #link: DatabaseLink;
  readonly #rows = new RowIndex();
  readonly #bindings = new Map<string, Binding>();
  readonly #unmatched: Unmatched;
  /** Arrival time of the oldest change of each VM that is not committed, on the monotonic clock. */
  readonly #changedAt = new Map<string, number>();
  /** Time since which a VM has reported a state that may be transient. */
  readonly #transientSince = new Map<string, number>();
  readonly #inFlight = new Set<string>();
  /** Keys that a comparison enqueued, with the reason of the comparison. */
  readonly #corrections = new Map<string, Trigger>();
  readonly #duplicates = new Set<string>();
  /** Rows that were written or found while a comparison reads the table: what it reads of them may be older. */
  #touchedRows: Set<string> | undefined;
  /** Whether the cache is at least as new as everything that an earlier leader has written. */
  #isFresh = false;
  #acquired: ReadonlySet<number> = new Set();
  #collecting: Promise<unknown> = Promise.resolve();
  #nextResyncAt = 0;
  lastComparisonAt = 0;

  constructor(options: TermOptions) {
    const { world, log, database, backoff, reporter } = options;
    this.#options = options;
    this.#queue = new WorkQueue({ clock: world, backoff });
    this.#unmatched = new Unmatched(world);
    this.#link = new DatabaseLink({
      ...{ world, log, database, backoff },
      prepare: (session, signal) => this.#prepare(session, signal),
      onFailure: (error) => {
        if (error.scope === 'fence') this.#isFresh = false;
        reporter.databaseFailed(error);
      },
    });
  }

  get isConnected(): boolean {
    return this.#link.isConnected;
  }

  get pending(): number {
    return this.#changedAt.size;
  }

  get oldestPendingMs(): number {
    const [oldest] = this.#changedAt.values();
    return oldest === undefined ? 0 : this.#options.world.monotonic() - oldest;
  }

  get duplicateRows(): number {
    return this.#duplicates.size;
  }

  get withoutRow(): number {
    return this.#unmatched.size;
  }

  /** Runs until the signal of the context aborts and the last batch has ended. */
  async run(): Promise<void> {
    const { signal } = this.#options.context;
    const close = () => void this.#queue.close();
    if (signal.aborted) close();
    else signal.addEventListener('abort', close, { once: true });
    const workers = Array.from({ length: this.#options.workers }, () => this.#runWorker(signal));
    await Promise.all([this.#link.run(signal), this.#runMaintenance(signal), ...workers]);
  }

  /** Enqueues a VM that has changed. */
  onChange(event: CacheEvent<VirtualMachine>): void {
    const { key, type, initial } = event;
    if (!this.#owns(key)) return;
    if (type === 'removed' && !this.#bindings.has(key)) {
      const { object } = event;
      const match = this.#rows.match(object);
      if (match === undefined) {
        this.#changedAt.delete(key);
        this.#forget(key);
        return;
      }
      this.#bindings.set(key, { uid: object.metadata.uid ?? '', rowId: match.row.id });
    }
    if (!this.#changedAt.has(key)) this.#changedAt.set(key, this.#options.world.monotonic());
    this.#queue.add(key, { priority: initial ? LOW : NORMAL });
  }

  /** Drops the state of a VM that does not exist. */
  #forget(key: string): void {
    this.#unmatched.delete(key);
    this.#transientSince.delete(key);
    this.#duplicates.delete(key);
  }

  #owns(key: string): boolean {
    return this.#options.context.shards?.owns(key) ?? true;
  }

  #shardOf(key: string): number {
    return this.#options.context.shards?.shardOf(key) ?? ONLY_SHARD;
  }

  // Sessions and comparisons

  /**
   * Prepares a new session. The order matters: an earlier leader cannot write after `acquire`, so a list of the cluster
   * that begins afterwards is at least as new as its last write, and a read of the table contains that write.
   */
  async #prepare(session: Session, signal: AbortSignal): Promise<void> {
    const { context, vms, takesOver, reporter } = this.#options;
    reporter.sessionOpened();
    this.#acquired = new Set();
    const shards = context.shards?.held ?? new Set([ONLY_SHARD]);
    this.#assertLeader(); // a deposed leader must not take the shards from its successor
    await session.acquire([...shards], takesOver, signal);
    this.#assertLeader();
    this.#acquired = shards;
    if (!this.#isFresh && takesOver) await vms.refresh(signal);
    this.#isFresh = true;
    await this.#compare(session, 'start', signal);
  }

  #assertLeader(): void {
    if (this.#options.context.shards === undefined) this.#options.context.assertLeader();
  }

  /** Compares the whole table with the whole cluster and enqueues every difference. */
  async #compare(session: Session, trigger: Trigger, signal: AbortSignal): Promise<void> {
    const { world, log, vms, resyncMs } = this.#options;
    const startedAt = world.monotonic();
    await this.#readTable(session);
    const candidates = [...(await this.#differingVms(signal)), ...(await this.#rowsWithoutVm(signal))];
    // The cache may be late: a correction must not replace the status of a newer state.
    if (trigger === 'resync' && candidates.length > 0) await vms.refresh(signal);
    for (const key of candidates) {
      const isExpected = trigger === 'resync' && (this.#changedAt.has(key) || this.#inFlight.has(key));
      if (!isExpected) this.#corrections.set(key, trigger);
      this.#queue.add(key, { priority: LOW });
    }
    this.lastComparisonAt = world.now();
    this.#nextResyncAt = world.monotonic() + resyncMs * (0.9 + 0.2 * world.random());
    log.info(
      {
        ...{ trigger, rows: this.#rows.size, vms: vms.size, differences: candidates.length },
        durationMs: Math.round(world.monotonic() - startedAt),
      },
      'Compared the table with the cluster',
    );
  }

  async #readTable(session: Session): Promise<void> {
    const touched = new Set<string>();
    this.#touchedRows = touched;
    try {
      const seen = new Set<string>();
      for await (const page of session.rows()) {
        for (const row of page) {
          seen.add(row.id);
          if (!touched.has(row.id)) this.#rows.put(row);
        }
      }
      for (const { id } of [...this.#rows.rows()])
        if (!seen.has(id) && !touched.has(id)) this.#rows.delete(id);
    } finally {
      this.#touchedRows = undefined;
    }
  }

  /** Returns the keys of VMs whose row has another status. */
  async #differingVms(signal: AbortSignal): Promise<readonly string[]> {
    const keys: string[] = [];
    for await (const key of this.#inSlices([...this.#options.vms.keys()], signal)) {
      if (!this.#owns(key)) continue;
      const planned = this.#plan(key);
      if (planned.writes.length > 0) keys.push(key);
      else this.#settle(key, planned);
    }
    return keys;
  }

  /** Returns the keys of rows that show a VM which does not exist. */
  async #rowsWithoutVm(signal: AbortSignal): Promise<readonly string[]> {
    const keys: string[] = [];
    for await (const row of this.#inSlices([...this.#rows.rows()], signal))
      if (this.#owns(vmKey(row)) && this.#isOrphaned(row)) keys.push(rowKey(row));
    return keys;
  }

  async *#inSlices<T>(items: readonly T[], signal: AbortSignal): AsyncGenerator<T, void, undefined> {
    for (const [at, item] of items.entries()) {
      if (at % SLICE === SLICE - 1) await wait(this.#options.world, 0, signal);
      yield item;
    }
  }

  /** Returns whether a row shows a VM that does not exist. */
  #isOrphaned(row: Row): boolean {
    const { vms, mapping, namespaces } = this.#options;
    if (!isMirrored(row, mapping)) return false;
    if (row.namespace === '')
      return namespaces === undefined && vms.countByIndex(VAPP_INDEX, `${row.vapp}/${row.vmName}`) === 0;
    const isWatched = namespaces?.includes(row.namespace) ?? true;
    if (!isWatched || vms.unlistable.includes(row.namespace)) return false;
    const vm = vms.get(vmKey(row));
    return vm === undefined || !describes(row, vm);
  }

  /** Searches for rows of VMs without one, acquires and releases shards, and starts resyncs. */
  async #runMaintenance(signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    while (!signal.aborted) {
      await wait(world, TICK_MS, signal).catch(() => undefined);
      const session = this.#link.current;
      if (session === undefined || signal.aborted) continue;
      await this.#withSession(session, async () => {
        await this.#followShards(session, signal);
        await this.#search(session, this.#unmatched.due());
        if (world.monotonic() >= this.#nextResyncAt) await this.#compare(session, 'resync', signal);
      });
    }
  }

  /** Calls a function and closes the session if it fails. @returns whether it succeeded */
  async #withSession(session: Session, act: () => Promise<void>): Promise<boolean> {
    const { world, context } = this.#options;
    const { signal, log } = context;
    try {
      await act();
      return true;
    } catch (error) {
      if (error instanceof DatabaseError) this.#link.failed(session, error);
      else if (!signal.aborted) {
        log.warn({ error: messageOf(error) }, 'Mirroring failed, retrying');
        await wait(world, RETRY_MS, signal).catch(() => undefined);
      }
      return false;
    }
  }

  async #followShards(session: Session, signal: AbortSignal): Promise<void> {
    const { context, takesOver, vms } = this.#options;
    if (context.shards === undefined) return;
    const { held } = context.shards;
    const [gained, lost] = [held.difference(this.#acquired), this.#acquired.difference(held)];
    if (lost.size > 0) {
      this.#acquired = this.#acquired.difference(lost);
      await session.release([...lost]);
    }
    if (gained.size === 0) return;
    await session.acquire([...gained], takesOver, signal);
    this.#acquired = this.#acquired.union(gained);
    await vms.refresh(signal);
    await this.#compare(session, 'start', signal);
  }

  /** Searches for the rows of VMs, and enqueues the VMs whose row was found. */
  async #search(session: Session, keys: readonly string[]): Promise<void> {
    const { vms } = this.#options;
    for (let from = 0; from < keys.length; from += SEARCH_NAMES) {
      const some = keys.slice(from, from + SEARCH_NAMES);
      const names = new Set(some.map((key) => key.slice(key.indexOf('/') + 1)));
      for (const row of await session.find([...names])) this.#putRow(row);
      for (const key of some) {
        const vm = vms.get(key);
        if (vm === undefined) this.#unmatched.delete(key);
        else if (this.#rows.match(vm) !== undefined) this.#queue.add(key);
      }
    }
  }

  #putRow(row: Row): void {
    // A write that is in flight may be newer than what was read.
    if (this.#rows.get(row.id) === undefined) this.#rows.put(row);
    this.#touchedRows?.add(row.id);
  }

  // Batches

  async #runWorker(signal: AbortSignal): Promise<void> {
    for (;;) {
      const collected = this.#collecting.then(() => this.#collect());
      this.#collecting = collected;
      const keys = await collected;
      if (keys.length === 0) return;
      const session = await this.#link.session(signal).catch(() => undefined);
      for (const key of keys) this.#inFlight.add(key);
      const isWritten =
        session !== undefined && (await this.#withSession(session, () => this.#mirror(session, keys)));
      for (const key of keys) {
        this.#inFlight.delete(key);
        if (!isWritten) this.#queue.add(key);
        this.#queue.done(key);
      }
    }
  }

  /** Waits for a key and collects those that become ready within a few milliseconds. @returns none when the queue is closed */
  async #collect(): Promise<readonly string[]> {
    const { world } = this.#options;
    const first = await this.#queue.take();
    if (first === undefined) return [];
    await wait(world, COLLECT_MS);
    const keys = [first.key];
    while (keys.length < MAX_BATCH_ROWS) {
      const item = this.#queue.tryTake();
      if (item === undefined) break;
      keys.push(item.key);
    }
    return keys;
  }

  /** Brings the rows of some VMs up to date. @throws if the database is unavailable; all of them have to be retried then */
  async #mirror(session: Session, keys: readonly string[]): Promise<void> {
    const changedAt = new Map(keys.map((key) => [key, this.#changedAt.get(key)]));
    const isNew = (key: string) => rowIdOf(key) === undefined && !this.#unmatched.has(key);
    const missing = keys.filter((key) => isNew(key) && this.#plan(key).row === undefined && this.#vm(key));
    if (missing.length > 0) await this.#search(session, missing);
    const writes: KeyedWrite[] = [];
    const targets = new Set<string>();
    for (const key of keys) {
      const planned = this.#plan(key);
      this.#settle(key, planned);
      if (planned.againAfterMs !== undefined) changedAt.delete(key); // not settled: it stays pending
      for (const write of planned.writes) {
        if (targets.has(write.row.id)) continue; // planned for two VMs; the second is planned again after this batch
        targets.add(write.row.id);
        writes.push({ ...write, key });
      }
      if (planned.writes.length === 0) this.#succeed(key);
    }
    await this.#write(session, writes);
    for (const [key, at] of changedAt) if (this.#changedAt.get(key) === at) this.#changedAt.delete(key);
  }

  #vm(key: string): VirtualMachine | undefined {
    return rowIdOf(key) === undefined ? this.#options.vms.get(key) : undefined;
  }

  #plan(key: string): Plan {
    const { world, mapping } = this.#options;
    const rowId = rowIdOf(key);
    if (rowId !== undefined) {
      const row = this.#rows.get(rowId);
      if (row === undefined || !this.#isOrphaned(row)) return { writes: [], row, duplicates: [] };
      const waitMs = NEW_ROW_MS - (world.now() - row.createdAt);
      if (waitMs > 0) return { writes: [], row, againAfterMs: waitMs, duplicates: [] };
      return {
        writes: [{ row, status: mapping.Deleted, state: 'Deleted', uid: undefined }],
        row,
        duplicates: [],
      };
    }
    const vm = this.#options.vms.get(key);
    const since = this.#transientSince.get(key) ?? world.monotonic();
    if (vm !== undefined && isTransient(vm, stateOf(vm))) this.#transientSince.set(key, since);
    else this.#transientSince.delete(key);
    const transientForMs = world.monotonic() - since;
    const observed = { vm, binding: this.#bindings.get(key), rows: this.#rows, transientForMs };
    return plan(observed, this.#options, world.now());
  }

  /** Remembers what a plan found out beside its writes. */
  #settle(key: string, { writes, row, againAfterMs, duplicates }: Plan): void {
    const { reporter, vms } = this.#options;
    if (againAfterMs !== undefined) this.#queue.add(key, { afterMs: againAfterMs });
    if (rowIdOf(key) !== undefined) return;
    const vm = vms.get(key);
    if (vm === undefined) {
      this.#forget(key);
      return;
    }
    if (row === undefined) this.#unmatched.add(key);
    else this.#unmatched.delete(key);
    if (row !== undefined && !writes.some((write) => write.row.id === row.id))
      this.#bindings.set(key, { uid: vm.metadata.uid ?? '', rowId: row.id });
    if (duplicates.length === 0) this.#duplicates.delete(key);
    else if (!this.#duplicates.has(key)) {
      this.#duplicates.add(key);
      reporter.duplicateRows(key, row, duplicates);
    }
  }

  async #write(session: Session, all: readonly KeyedWrite[]): Promise<void> {
    const { world, context, reporter } = this.#options;
    const { shards } = context;
    using works = new DisposableStack();
    const writes = all.filter(({ key, row }) => {
      const work = shards?.begin(rowIdOf(key) === undefined ? key : vmKey(row));
      if (work !== undefined) works.defer(() => work.end());
      return shards === undefined || work !== undefined;
    });
    if (writes.length === 0) return;
    const targets = writes.map(({ key, row }) => (rowIdOf(key) === undefined ? key : vmKey(row)));
    if (shards === undefined) context.assertLeader();
    else for (const target of targets) shards.fence(target).assertOpen();
    const startedAt = world.monotonic();
    let results: readonly WriteResult[];
    try {
      results = await writeBatch(
        session,
        writes.map(({ row, status }) => ({ id: row.id, status })),
        [...new Set(targets.map((target) => this.#shardOf(target)))],
      );
    } catch (error) {
      for (const { key, row } of writes) reporter.writeFailed(this.#vm(key), row, error);
      throw error;
    }
    reporter.batchWritten(writes.length);
    const skipped: KeyedWrite[] = [];
    for (const [at, write] of writes.entries()) {
      const result = results[at] ?? { type: 'skipped' };
      reporter.wrote(write.row.namespace, write.status, result, world.monotonic() - startedAt);
      if (result.type === 'skipped') skipped.push(write);
      else if (result.type === 'rejected') this.#fail(write, result.error);
      else this.#committed(write, result.type === 'written');
    }
    await this.#resolveSkipped(session, skipped);
  }

  #committed(write: KeyedWrite, isChanged: boolean): void {
    const { world, reporter } = this.#options;
    const { key, row, status, uid, state } = write;
    this.#rows.setStatus(row.id, status);
    this.#touchedRows?.add(row.id);
    if (uid === undefined) {
      if (this.#bindings.get(key)?.rowId === row.id) this.#bindings.delete(key);
    } else this.#bindings.set(key, { uid, rowId: row.id });
    if (isChanged) {
      const changedAt = this.#changedAt.get(key);
      const lagMs = changedAt === undefined ? undefined : world.monotonic() - changedAt;
      reporter.committed(this.#vm(key), write, state, lagMs, this.#corrections.get(key));
    }
    this.#succeed(key);
  }

  #succeed(key: string): void {
    this.#corrections.delete(key);
    this.#queue.forget(key);
    this.#options.deadLetters.succeeded(key);
  }

  #fail({ key, row, status }: KeyedWrite, error: DatabaseError): void {
    const { deadLetters, reporter } = this.#options;
    const vm = vmKey(row);
    const isDead = deadLetters.failed(key, { vm, rowId: row.id, status, error: error.message });
    if (isDead) reporter.deadLetter(this.#vm(key), row, error);
    else reporter.writeFailed(this.#vm(key), row, error);
    this.#queue.retry(key);
  }

  /** Finds out why rows were not written: rows that still exist are locked, all others were deleted. */
  async #resolveSkipped(session: Session, skipped: readonly KeyedWrite[]): Promise<void> {
    if (skipped.length === 0) return;
    const found = new Map(
      (await session.find(skipped.map(({ row }) => row.vmName))).map((row) => [row.id, row]),
    );
    for (const write of skipped) {
      const { key, row } = write;
      const current = found.get(row.id);
      if (current !== undefined) this.#fail(write, LOCKED);
      else {
        this.#rows.delete(row.id);
        if (this.#bindings.get(key)?.rowId === row.id) this.#bindings.delete(key);
        if (rowIdOf(key) === undefined) this.#queue.add(key);
      }
    }
    for (const row of found.values()) this.#putRow(row);
  }
}

/** Index of the VM cache: VMs by `vapp/name`. */
export const VAPP_INDEX = 'vapp';

const LOCKED = new DatabaseError('the row is locked by another transaction', '55P03', 'rows');
