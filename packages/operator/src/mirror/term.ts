import {
  type CacheEvent,
  jittered,
  LOW,
  messageOf,
  NORMAL,
  type ObjectCache,
  type RunnableContext,
  refOf,
  WorkQueue,
  wait,
} from '@vmwright/runtime';
import { type WriteResult, writeBatch } from './batch.ts';
import { CacheAges } from './cache-age.ts';
import { compare } from './comparison.ts';
import { DatabaseError, type Session } from './database.ts';
import { DatabaseLink } from './database-link.ts';
import type { DeadLetters } from './dead-letters.ts';
import { FencedShards } from './fenced-shards.ts';
import { KeyBatches } from './key-batches.ts';
import type { Trigger } from './metrics.ts';
import type { MirrorOptions } from './mirror.ts';
import { type Plan, type PlannedWrite, rowIdOf } from './plan.ts';
import type { Reporter } from './reporter.ts';
import { vmKey } from './rows.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import { VmRows } from './vm-rows.ts';

/** Interval at which rows are searched for, shards are acquired, and the time of the next resync is checked. */
const TICK_MS = 500;
/** Maximum number of names in one search. */
const SEARCH_NAMES = 10_000;
/** Time for which a locked row is retried at short intervals. Most locks are held for milliseconds. */
const LOCK_PATIENCE_MS = 1_000;
const LOCK_RETRY_MS = 50;
/** Time after which a resync that failed is repeated. */
const RESYNC_RETRY_MS = 30_000;
/**
 * Pause after an error that does not come from the database. For example, leadership was lost, but the signal has not
 * aborted yet.
 */
const RETRY_MS = 1_000;

/** A planned write. `key` is its queue key; `vmKey` is the key of its VM, which determines the shard. */
interface KeyedWrite extends PlannedWrite {
  readonly key: string;
  readonly vmKey: string;
}

export interface TermOptions extends MirrorOptions {
  readonly vms: ObjectCache<VirtualMachine>;
  readonly context: RunnableContext;
  readonly reporter: Reporter;
  readonly deadLetters: DeadLetters;
}

/**
 * One leadership term of the mirror, with all its state in memory. Each term starts without state, because another
 * replica may have written rows since the last one.
 *
 * Flow: a change of a VM enqueues its key. A worker collects the keys that arrive within a few milliseconds. It plans
 * the rows from the newest known state of each VM, and writes them in one statement. When a session with the database
 * is opened, the whole table is first compared with the whole cluster.
 */
export class Term {
  readonly #options: TermOptions;
  readonly #queue: WorkQueue;
  readonly #link: DatabaseLink;
  readonly #vmRows: VmRows;
  /** Arrival time of the oldest uncommitted change of each VM, on the monotonic clock. */
  readonly #changedAt = new Map<string, number>();
  readonly #inFlight = new Set<string>();
  /**
   * Keys for which a comparison of the table with the cluster found a difference, with the trigger of the comparison.
   * If a resync finds an expected difference (`#isPending`), its key is not added.
   */
  readonly #corrections = new Map<string, Trigger>();
  /** Time at which the row of a key was first found locked by another transaction, on the monotonic clock. */
  readonly #lockedSince = new Map<string, number>();
  readonly #shards: FencedShards;
  readonly #cacheAges: CacheAges;
  readonly #batches: KeyBatches;
  #nextResyncAt = 0;
  lastComparisonAt = 0;

  constructor(options: TermOptions) {
    const { world, log, database, backoff, reporter, context, takesOver } = options;
    this.#options = options;
    this.#shards = new FencedShards(context.shards, takesOver);
    this.#cacheAges = new CacheAges(takesOver, context.hasFreshCaches);
    this.#queue = new WorkQueue({ clock: world, backoff });
    this.#batches = new KeyBatches(world, this.#queue);
    this.#vmRows = new VmRows({
      ...options,
      onDuplicates: (key, row, older) => reporter.duplicateRows(key, row, older),
      onUnrecognized: () => reporter.unrecognizedStatus(),
    });
    this.#link = new DatabaseLink({
      world,
      log,
      database,
      backoff,
      prepare: (session, signal) => this.#prepare(session, signal),
      onFailure: (error) => {
        if (error.scope === 'fence') this.#cacheAges.tookOver();
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

  /** Age of the oldest uncommitted change in milliseconds. Ignores dead letters. */
  get oldestPendingMs(): number {
    const { world, deadLetters } = this.#options;
    for (const [key, at] of this.#changedAt) if (!deadLetters.has(key)) return world.monotonic() - at;
    return 0;
  }

  /** VMs with a change that is not committed, for debugging. */
  get inFlight(): readonly object[] {
    const now = this.#options.world.monotonic();
    return [...this.#changedAt].map(([key, at]) => ({
      object: key,
      forMs: Math.round(now - at),
      isInBatch: this.#inFlight.has(key),
      failures: this.#queue.failures(key),
    }));
  }

  get duplicateRows(): number {
    return this.#vmRows.duplicates;
  }

  get withoutRow(): number {
    return this.#vmRows.unmatched.size;
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
    if (!this.#shards.owns(key)) return;
    if (type === 'removed') this.#vmRows.deleted(key, event.object);
    else if (type === 'added' || event.replaces) this.#vmRows.created(key);
    if (!this.#changedAt.has(key)) this.#changedAt.set(key, this.#options.world.monotonic());
    this.#queue.add(key, { priority: initial ? LOW : NORMAL });
  }

  /**
   * Prepares a new session. The order matters:
   * - After the shards are acquired, an earlier leader cannot write any more.
   * - A read of the table that begins afterwards returns the last write of the earlier leader.
   * - A list of the cluster that begins afterwards is at least as new as the state in that write.
   */
  async #prepare(session: Session, signal: AbortSignal): Promise<void> {
    this.#options.reporter.sessionOpened();
    await this.#shards.acquireAll(session, () => this.#assertLeader(), signal);
    await this.#compare(session, 'start', signal);
  }

  #assertLeader(): void {
    if (this.#options.context.shards === undefined) this.#options.context.assertLeader();
  }

  /** Compares the whole table with the whole cluster and enqueues every difference. */
  async #compare(session: Session, trigger: Trigger, signal: AbortSignal): Promise<void> {
    const { world, log, vms, resyncMs } = this.#options;
    const startedAt = world.monotonic();
    this.#nextResyncAt = startedAt + Math.min(resyncMs, RESYNC_RETRY_MS);
    const unlistable = new Set(vms.unlistable); // namespaces that are not compared: their cached VMs may be out of date
    const { age: cacheAge, succeeded } = this.#cacheAges.begin();
    const different = await compare(
      {
        clock: world,
        session,
        vmRows: this.#vmRows,
        cacheAge,
        refresh: () => vms.refresh(signal),
        keys: () => vms.keys(),
        owns: (key) => this.#shards.owns(key) && !unlistable.has(refOf(key).namespace ?? ''),
        onSettled: (key, plan) => this.#settle(key, plan),
      },
      signal,
    );
    succeeded();
    this.#shards.compared();
    for (const key of different) {
      if (trigger === 'start' || !this.#isPending(key)) this.#corrections.set(key, trigger);
      this.#queue.add(key, { priority: LOW });
    }
    this.lastComparisonAt = world.now();
    this.#nextResyncAt = world.monotonic() + jittered(world, resyncMs, 0.1);
    const durationMs = Math.round(world.monotonic() - startedAt);
    const fields = { trigger, rows: this.#vmRows.rows.size, vms: vms.size, differences: different.length };
    log.info({ ...fields, durationMs }, 'Compared the table with the cluster');
  }

  /**
   * Whether a difference between the table and the cluster is expected: a change of the VM is not committed yet, or the
   * row of the VM was not found yet.
   */
  #isPending(key: string): boolean {
    const keys = [key, this.#vmRows.vmKeyOf(key)];
    const { unmatched } = this.#vmRows;
    return keys.some((each) => this.#changedAt.has(each) || this.#inFlight.has(each) || unmatched.has(each));
  }

  /** Searches for the rows of unmatched VMs, acquires and releases shards, and starts resyncs. */
  async #runMaintenance(signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    while (!signal.aborted) {
      await wait(world, TICK_MS, signal).catch(() => undefined);
      const session = this.#link.current;
      if (session === undefined || signal.aborted) continue;
      await this.#withSession(session, async () => {
        await this.#followShards(session, signal);
        await this.#searchUnmatched(session);
        if (world.monotonic() >= this.#nextResyncAt) await this.#compare(session, 'resync', signal);
      });
    }
  }

  /**
   * Calls a function. If it fails with a `DatabaseError`, closes the session; after any other error, logs the error and
   * pauses.
   * @returns whether the function succeeded
   */
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

  /**
   * Acquires shards that were newly assigned to this replica, and releases shards that are not assigned to it any more.
   */
  async #followShards(session: Session, signal: AbortSignal): Promise<void> {
    await this.#shards.releaseLost(session, () => this.#dropUnowned());
    const compare = () => {
      this.#cacheAges.tookOver(); // the previous owner may have written newer states
      return this.#compare(session, 'start', signal);
    };
    await this.#shards.acquireGained(session, compare, signal);
  }

  #dropUnowned(): void {
    const isDropped = (key: string) => !this.#shards.owns(this.#vmRows.vmKeyOf(key));
    this.#vmRows.drop(isDropped);
    for (const map of [this.#changedAt, this.#corrections, this.#lockedSince])
      for (const key of [...map.keys()]) if (isDropped(key)) map.delete(key);
  }

  /** Searches the table for the rows of VMs, by name. @param keys keys of the VMs */
  async #search(session: Session, keys: readonly string[]): Promise<void> {
    // Called before the search begins, so that a VM that is re-created during the search is searched for again.
    this.#vmRows.searching(keys);
    for (let from = 0; from < keys.length; from += SEARCH_NAMES) {
      const some = keys.slice(from, from + SEARCH_NAMES);
      const names = new Set(some.map((key) => key.slice(key.indexOf('/') + 1)));
      for (const row of await session.find([...names])) this.#vmRows.found(row);
    }
  }

  /**
   * Searches for the rows of VMs without a row of their own, if their next search is due. Enqueues each VM for which a
   * row was found.
   */
  async #searchUnmatched(session: Session): Promise<void> {
    const keys = this.#vmRows.dueSearches();
    await this.#search(session, keys);
    for (const key of keys) if (this.#vmRows.isFound(key)) this.#queue.add(key);
  }

  async #runWorker(signal: AbortSignal): Promise<void> {
    for (;;) {
      const keys = await this.#batches.next();
      if (keys.length === 0) return;
      const session = await this.#link.session(signal).catch(() => undefined);
      for (const key of keys) this.#inFlight.add(key);
      const isMirrored =
        session !== undefined &&
        (await this.#withSession(session, () => {
          const mirror = () => this.#mirror(session, keys);
          return (
            this.#options.tracer?.span('mirror batch', { 'mirror.vms': keys.length }, mirror) ?? mirror()
          );
        }));
      for (const key of keys) {
        this.#inFlight.delete(key);
        if (!isMirrored) this.#queue.add(key);
        this.#queue.done(key);
      }
    }
  }

  /**
   * Brings the rows of some VMs up to date.
   * @throws if the database is unavailable or the VMs cannot be listed; then all keys must be retried
   */
  async #mirror(session: Session, all: readonly string[]): Promise<void> {
    const isCompared = (key: string) => this.#shards.isCompared(this.#vmRows.vmKeyOf(key));
    const keys = all.filter(isCompared);
    for (const key of all) if (!isCompared(key)) this.#postpone(key);
    const changedAt = new Map(keys.map((key) => [key, this.#changedAt.get(key)]));
    const missing = keys.filter((key) => this.#vmRows.needsSearch(key) || this.#vmRows.isWaiting(key));
    if (missing.length > 0) await this.#search(session, missing);
    const deleted = keys.filter((key) => this.#vmRows.isDeletedWithRow(key));
    if (deleted.length > 0) await this.#options.vms.refresh(this.#options.context.signal);
    for (const key of deleted) this.#vmRows.bindDeleted(key);
    const writes: KeyedWrite[] = [];
    const targets = new Set<string>();
    for (const key of keys) {
      const plan = this.#vmRows.plan(key);
      this.#settle(key, plan);
      // `changedAt` holds the changes that are complete after this batch. The change of a VM that must be planned again
      // is not complete. Exception: if the VM has a row, and only waits before it switches to a newer row, this batch
      // writes the change to the current row.
      if (plan.againAfterMs !== undefined && (plan.isWaiting !== true || plan.row === undefined))
        changedAt.delete(key);
      for (const write of plan.writes) {
        if (targets.has(write.row.id)) {
          this.#queue.add(key); // another key of this batch writes the same row, so this key is planned again afterwards
          continue;
        }
        targets.add(write.row.id);
        writes.push({ ...write, key, vmKey: rowIdOf(key) === undefined ? key : vmKey(write.row) });
      }
      if (plan.writes.length === 0) this.#succeed(key);
    }
    await this.#write(session, writes);
    for (const [key, at] of changedAt)
      if (this.#changedAt.get(key) === at && !this.#isUnwritten(key)) this.#changedAt.delete(key);
  }

  /**
   * Retries a key later, because the rows of its shard were not compared with the cluster yet. If this replica no
   * longer owns the shard, drops the key.
   */
  #postpone(key: string): void {
    if (this.#shards.owns(this.#vmRows.vmKeyOf(key))) this.#queue.add(key, { afterMs: TICK_MS });
    else this.#disown(key);
  }

  /** Whether the last write of a key failed, or was skipped because the row was locked. */
  #isUnwritten(key: string): boolean {
    return this.#queue.failures(key) > 0 || this.#lockedSince.has(key);
  }

  #settle(key: string, plan: Plan): void {
    if (plan.againAfterMs !== undefined) this.#queue.add(key, { afterMs: plan.againAfterMs });
    this.#vmRows.settle(key, plan);
  }

  async #write(session: Session, planned: readonly KeyedWrite[]): Promise<void> {
    const { world, context, reporter } = this.#options;
    const { shards } = context;
    using works = new DisposableStack();
    const writes = planned.filter((write) => {
      const work = shards?.begin(write.vmKey);
      if (work !== undefined) works.defer(() => work.end());
      else if (shards !== undefined) this.#disown(write.key);
      return shards === undefined || work !== undefined;
    });
    if (writes.length === 0) return;
    if (shards === undefined) context.assertLeader();
    else for (const write of writes) shards.fence(write.vmKey).assertOpen();
    const startedAt = world.monotonic();
    let results: readonly WriteResult[];
    try {
      results = await writeBatch(
        session,
        writes.map(({ row, status }) => ({ id: row.id, status })),
        [...new Set(writes.map((write) => this.#shards.shardOf(write.vmKey)))],
      );
    } catch (error) {
      for (const { key, row } of writes) reporter.writeFailed(this.#vmRows.vm(key), row, error);
      throw error;
    }
    reporter.batchWritten(writes.length);
    const skipped: KeyedWrite[] = [];
    for (const [at, write] of writes.entries()) {
      const result = results[at] ?? { type: 'skipped' };
      reporter.wrote(write.row.namespace, write.status, result, world.monotonic() - startedAt);
      if (result.type === 'skipped') skipped.push(write);
      else if (result.type === 'rejected') this.#fail(write, result.error);
      else this.#onCommitted(write, result.type === 'written');
    }
    if (skipped.length > 0) await this.#resolveSkipped(session, skipped);
  }

  #onCommitted(write: KeyedWrite, isChanged: boolean): void {
    const { world, reporter } = this.#options;
    const { key } = write;
    this.#vmRows.committed(key, write);
    // If the row was written under its own key (`rowKey`), its VM is planned again: the last plan of the VM may have
    // used the old status of the row.
    if (rowIdOf(key) !== undefined && write.row.namespace !== '') this.#queue.add(write.vmKey);
    if (isChanged) {
      const changedAt = this.#changedAt.get(key);
      const lagMs = changedAt === undefined ? undefined : world.monotonic() - changedAt;
      reporter.committed(this.#vmRows.vm(key), write, lagMs, this.#corrections.get(key));
    }
    this.#succeed(key);
  }

  #succeed(key: string): void {
    this.#corrections.delete(key);
    this.#lockedSince.delete(key);
    this.#queue.forget(key);
    this.#options.deadLetters.succeeded(key);
  }

  /** Drops the change of a VM that another replica mirrors now. */
  #disown(key: string): void {
    this.#changedAt.delete(key);
    this.#succeed(key);
  }

  #fail({ key, row, status }: KeyedWrite, error: DatabaseError): void {
    const { deadLetters, reporter } = this.#options;
    const vm = this.#vmRows.vm(key);
    const letter = { vm: vmKey(row), rowId: row.id, status, error: error.message };
    if (deadLetters.failed(key, letter)) reporter.deadLetter(vm, row, error);
    else reporter.writeFailed(vm, row, error);
    this.#queue.retry(key);
  }

  /**
   * Retries a row that another transaction has locked. For the first `LOCK_PATIENCE_MS`, retries often and reports
   * nothing.
   */
  #retryLocked(write: KeyedWrite): void {
    const now = this.#options.world.monotonic();
    const since = this.#lockedSince.get(write.key) ?? now;
    this.#lockedSince.set(write.key, since);
    if (now - since >= LOCK_PATIENCE_MS) this.#fail(write, LOCKED);
    else this.#queue.add(write.key, { afterMs: LOCK_RETRY_MS });
  }

  /**
   * Finds out why rows were not written, and retries their keys. A row that still exists is locked by another
   * transaction; any other row was deleted.
   */
  async #resolveSkipped(session: Session, skipped: readonly KeyedWrite[]): Promise<void> {
    const rows = await session.find(skipped.map(({ row }) => row.vmName));
    const existing = new Set(rows.map(({ id }) => id));
    for (const write of skipped) {
      if (existing.has(write.row.id)) this.#retryLocked(write);
      else {
        this.#lockedSince.delete(write.key);
        this.#vmRows.gone(write.key, write.row);
        this.#queue.add(write.key);
      }
    }
    for (const row of rows) this.#vmRows.found(row);
  }
}

const LOCKED = new DatabaseError('the row is locked by another transaction', '55P03', 'rows');
