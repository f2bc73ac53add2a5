import type { BufferedResponse, ModelRequest, ModelResponse, ModelServer } from '../world/server.ts';
import { Answer, failure, reply } from './answer.ts';
import { Backend } from './backend.ts';
import { Locks } from './locks.ts';
import type { FenceMode, Guard, Reply, Results, Statements } from './protocol.ts';
import { Table, type TableRow } from './table.ts';

/** Clock, timers, random behaviour and trace for the model. */
export interface DatabaseEnvironment {
  /** Milliseconds since 1970, by the server's clock. */
  now(): number;
  after(ms: number, act: () => void): void;
  /** Milliseconds that the next batch takes between its snapshot and its commit. */
  executionMs(): number;
  /** Milliseconds that the next batch waits before it is executed, as if a connection pooler had no free connection. */
  queuedMs(): number;
  /** Whether a session lingers: the server notices only after `KEEPALIVE_MS` that the session's client is gone. */
  lingers(): boolean;
  /** Whether a terminated session commits its running statement instead of rolling it back. */
  commitsWhenTerminated(): boolean;
  /** Maximum number of rows of a page. */
  readonly pageRows: number;
  /** Whether a constraint rejects this status in this row. */
  rejects(row: TableRow, status: string): boolean;
  note(what: string): void;
}

/** An event in the server, for invariants and counters. */
export type DatabaseEvent =
  | { readonly type: 'terminated' | 'fenced' | 'rejected'; readonly session: Backend }
  | { readonly type: 'acquired'; readonly session: Backend; readonly shards: readonly number[] }
  | { readonly type: 'read'; readonly session: Backend; readonly isFirst: boolean }
  | { readonly type: 'batch'; readonly session: Backend; readonly ids: readonly string[] }
  | {
      readonly type: 'committed';
      readonly session: Backend;
      /** Shards of the rows in the batch. */
      readonly shards: readonly number[];
      readonly written: number;
      /** Number of rows that the batch skipped because another transaction has locked them. */
      readonly locked: number;
      /** Ids of the rows that the batch skipped because they do not exist or are soft-deleted. */
      readonly missing: readonly string[];
    };

/** Time after which the server notices that the client of a lingering session is gone. */
const KEEPALIVE_MS = 60_000;

/**
 * Model of the parts of PostgreSQL that the status mirror uses: sessions, both modes of the fence (`FenceMode`), row
 * locks, constraints, slow statements, outages, and a fail-over to a standby that lacks the last commits.
 * `test/database-differential` compares the model with PostgreSQL.
 *
 * When the execution of a batch starts, the batch takes its snapshot, checks the fence and locks its rows. When the
 * execution ends, the batch commits.
 *
 * Not modelled: lock queues, transactions of several statements, isolation levels other than read committed.
 */
export class DatabaseServer implements ModelServer {
  readonly table = new Table();
  readonly #environment: DatabaseEnvironment;
  readonly #sessions = new Map<number, Backend>();
  readonly #locks = new Locks();
  readonly #epochs = new Map<number, number>();
  readonly #listeners: ((event: DatabaseEvent) => void)[] = [];
  #lastSession = 0;
  /** Whether the server accepts no connections. */
  #isDown = false;
  isReadOnly = false;
  /** Whether all connection slots are taken. */
  isFull = false;

  constructor(environment: DatabaseEnvironment) {
    this.#environment = environment;
  }

  listen(listener: (event: DatabaseEvent) => void): void {
    this.#listeners.push(listener);
  }

  get isWritable(): boolean {
    return !this.#isDown && !this.isReadOnly;
  }

  /** Ends all sessions, rolls back their running statements, and accepts no connections until `start` is called. */
  stop(): void {
    this.#isDown = true;
    for (const session of [...this.#sessions.values()]) this.#end(session, false);
  }

  start(): void {
    this.#isDown = false;
  }

  /**
   * Fails over to a standby that lacks the commits of the last `lostMs` milliseconds.
   * @returns the number of lost commits
   */
  failOver(lostMs: number): number {
    this.stop();
    const lost = this.table.undoSince(this.#environment.now() - lostMs);
    this.start();
    return lost;
  }

  /** Ends a session and its connection, as an administrator or a proxy does. */
  kill(session: Backend): void {
    this.#end(session, this.#environment.commitsWhenTerminated());
  }

  /**
   * Locks a row on behalf of another client, until the returned function is called. Does nothing if the row is already
   * locked.
   */
  lockRow(id: string): () => void {
    const owner = {};
    this.#locks.tryLock(id, owner);
    return () => this.#locks.release(owner);
  }

  /** Changes a row on behalf of the SSVirt API server, as soon as no transaction holds a lock on the row. */
  change(id: string, change: (row: TableRow | undefined) => TableRow | undefined): void {
    this.#locks.whenFree(id, () => {
      const row = this.isWritable ? change(this.table.get(id)) : undefined;
      if (row !== undefined) this.table.commit([row], 'ssvirt', this.#environment.now());
    });
  }

  reject(status: 429 | 500): BufferedResponse {
    return status === 500
      ? failure('57014', 'canceling statement due to user request')
      : failure('53300', 'sorry, too many clients already');
  }

  receive({ path, body }: ModelRequest): ModelResponse {
    const [, kind = '', id = '', name = ''] = path.split('/');
    if (this.#isDown) return failure('ECONNREFUSED', 'connect ECONNREFUSED');
    if (kind === 'open') return this.#open(JSON.parse(body ?? '{}'));
    const session = this.#sessions.get(Number(id));
    if (session === undefined) return failure('ECONNRESET', 'read ECONNRESET');
    return this.#execute(session, name, body ?? '{}');
  }

  #open({ identity, mode }: { readonly identity: string; readonly mode: FenceMode }): ModelResponse {
    if (this.isFull) return failure('53300', 'sorry, too many clients already');
    this.#lastSession += 1;
    const session = new Backend(this.#lastSession, identity, mode);
    this.#sessions.set(session.id, session);
    return {
      status: 200,
      open: (stream) => {
        session.stream = stream;
        stream.send(JSON.stringify({ result: session.id }));
        if (!this.#sessions.has(session.id)) stream.end();
        return () => this.#disconnected(session);
      },
    };
  }

  /**
   * Ends the session of a closed connection: immediately if the session is idle, otherwise after its last statement. A
   * lingering session ends only after `KEEPALIVE_MS`.
   */
  #disconnected(session: Backend): void {
    if (!this.#sessions.has(session.id)) return;
    if (this.#environment.lingers()) this.#environment.after(KEEPALIVE_MS, () => this.#end(session, true));
    else if (session.statement === undefined && session.queued === 0) this.#end(session, true);
    else session.isAbandoned = true;
  }

  #end(session: Backend, commits: boolean): void {
    if (!this.#sessions.has(session.id)) return;
    session.statement?.(commits);
    this.#sessions.delete(session.id);
    this.#locks.releaseShards(session);
    session.stream?.end();
  }

  #execute(session: Backend, name: string, body: string): ModelResponse {
    switch (name) {
      case 'write':
        return this.#queue(session, JSON.parse(body), this.#environment.executionMs());
      case 'bump':
        return this.#bump(session, JSON.parse(body));
      default:
        return reply({ result: this.#read(session, name, body) });
    }
  }

  /** Executes a statement that changes no row. The result reflects the state when the statement arrived. */
  #read(session: Backend, name: string, body: string): unknown {
    switch (name) {
      case 'lock':
        return this.#lock(session, JSON.parse(body));
      case 'unlock':
        return this.#unlock(session, JSON.parse(body));
      case 'terminate':
        return this.#terminate(session, JSON.parse(body));
      case 'page':
        return this.#page(session, JSON.parse(body));
      case 'find':
        return this.#find(JSON.parse(body));
      case 'check':
        return this.#holds(session, JSON.parse(body));
      default:
        throw new Error(`the model of the database does not support the statement "${name}"`);
    }
  }

  #lock(session: Backend, { shards }: Statements['lock']): Results['lock'] {
    const got = shards.filter((shard) => this.#locks.tryLockShard(shard, session));
    if (got.length > 0) this.#acquired(session, got);
    return got;
  }

  #unlock(session: Backend, { shards }: Statements['unlock']): null {
    for (const shard of shards) this.#locks.unlockShard(shard, session);
    return null;
  }

  #terminate(session: Backend, { shards }: Statements['terminate']): null {
    for (const holder of new Set(shards.flatMap((shard) => this.#locks.holderOf(shard) ?? []))) {
      if (holder === session) continue;
      this.#tell({ type: 'terminated', session: holder });
      this.#end(holder, this.#environment.commitsWhenTerminated());
    }
    return null;
  }

  #page(session: Backend, { after }: Statements['page']): Results['page'] {
    this.#tell({ type: 'read', session, isFirst: after === '' });
    const rows = this.#liveRows().filter(({ id, vmName }) => vmName !== null && id > after);
    const { pageRows } = this.#environment;
    return { rows: rows.slice(0, pageRows), isLast: rows.length < pageRows };
  }

  #find({ names }: Statements['find']): Results['find'] {
    return this.#liveRows().filter(({ vmName }) => vmName !== null && names.includes(vmName));
  }

  #liveRows(): readonly TableRow[] {
    return this.table.all().filter(({ deletedAt }) => deletedAt === null);
  }

  #holds({ mode, ...session }: Backend, { shards, epochs }: Guard): boolean {
    return shards.every((shard, at) =>
      mode === 'session'
        ? this.#locks.holderOf(shard)?.id === session.id
        : this.#epochs.get(shard) === epochs[at],
    );
  }

  /** Waits for the running batches that have checked the epochs of these shards, and then increments the epochs. */
  #bump(session: Backend, { shards }: Statements['bump']): ModelResponse {
    if (this.isReadOnly) return reply(readOnly('INSERT'));
    return this.#whenFree(shards.map(epochRow), session, () => {
      const epochs = shards.map((shard) => {
        const before = this.#epochs.get(shard);
        const epoch = (before ?? 0) + 1;
        this.#epochs.set(shard, epoch);
        this.table.record(this.#environment.now(), () => {
          if (before === undefined) this.#epochs.delete(shard);
          else this.#epochs.set(shard, before);
        });
        return epoch;
      });
      this.#acquired(session, shards);
      return { result: epochs };
    });
  }

  /** Executes a batch after its time in the queue, unless the session has ended by then. */
  #queue(session: Backend, statement: Statements['write'], ms: number): ModelResponse {
    const queuedMs = this.#environment.queuedMs();
    if (queuedMs === 0 && ms === 0) {
      const answers: Reply[] = [];
      this.#write(session, statement, 0, (answer) => answers.push(answer));
      return reply(answers[0] ?? { error: { code: 'XX000', message: 'no answer' } });
    }
    const answer = new Answer();
    session.queued += 1;
    this.#environment.after(queuedMs, () => {
      session.queued -= 1;
      if (!this.#sessions.has(session.id)) return;
      this.#write(session, statement, ms, (content) => answer.send(content));
      if (session.isAbandoned && session.statement === undefined) this.#end(session, true);
    });
    return answer.response;
  }

  #write(
    session: Backend,
    { writes, ...guard }: Statements['write'],
    ms: number,
    answer: (content: Reply) => void,
  ): void {
    if (this.isReadOnly) {
      answer(readOnly('UPDATE'));
      return;
    }
    this.#tell({ type: 'batch', session, ids: writes.map(({ id }) => id) });
    if (!this.#holds(session, guard)) {
      this.#tell({ type: 'fenced', session });
      answer({ result: { held: false, written: [], skipped: [] } });
      return;
    }
    const startedAt = this.#environment.now();
    const statement = {};
    const exists = ({ id }: { readonly id: string }) => this.table.get(id)?.deletedAt === null;
    const found = writes.map((write) => exists(write) && this.#locks.tryLock(write.id, statement));
    if (session.mode === 'table')
      for (const shard of guard.shards) this.#locks.share(epochRow(shard), statement);
    const skipped = found.flatMap((isFound, at) => (isFound ? [] : [at]));
    const missing = writes.filter((write) => !exists(write)).map(({ id }) => id);
    const locked = skipped.length - missing.length;
    const execute = (): Reply<Results['write']> => {
      const changed = writes.flatMap(({ id, status }, at) => {
        const row = this.table.get(id);
        return found[at] === true && row !== undefined && row.status !== status ? [{ at, row, status }] : [];
      });
      if (changed.some(({ row, status }) => this.#environment.rejects(row, status))) {
        this.#tell({ type: 'rejected', session });
        return { error: { code: '23514', message: 'new row for relation "vms" violates check constraint' } };
      }
      const rows = changed.map(({ row, status }) => ({
        ...row,
        status,
        updatedAt: Math.max(startedAt, row.updatedAt ?? 0),
      }));
      if (rows.length > 0)
        this.table.commit(rows, { type: 'batch', session: session.id }, this.#environment.now());
      const { shards } = guard;
      this.#tell({ type: 'committed', session, shards, written: rows.length, locked, missing });
      return { result: { held: true, written: changed.map(({ at }) => at), skipped } };
    };
    const end = (commits: boolean): Reply => {
      session.statement = undefined;
      try {
        return commits ? execute() : { error: { code: '57P01', message: 'terminating connection' } };
      } finally {
        this.#locks.release(statement);
        if (session.isAbandoned) this.#end(session, true);
      }
    };
    if (ms === 0) {
      answer(end(true));
      return;
    }
    const finish = (commits: boolean) => answer(end(commits));
    session.statement = finish;
    this.#environment.after(ms, () => {
      if (session.statement === finish) finish(true);
    });
  }

  /**
   * Executes a statement as soon as no transaction holds a lock on the given rows. Does nothing if the session has
   * ended by then.
   */
  #whenFree(rows: readonly string[], session: Backend, act: () => Reply): ModelResponse {
    const answer = new Answer();
    const [row, ...rest] = rows;
    if (row === undefined) {
      answer.send(act());
      return answer.response;
    }
    const wait = (id: string, others: readonly string[]) =>
      this.#locks.whenFree(id, () => {
        const [next, ...more] = others;
        if (!this.#sessions.has(session.id)) return;
        if (next !== undefined) wait(next, more);
        else answer.send(act());
      });
    wait(row, rest);
    return answer.response;
  }

  #acquired(session: Backend, shards: readonly number[]): void {
    const which = shards.join() === '0' ? '' : ` of the shards ${shards.join(', ')}`;
    this.#environment.note(`session ${session.id} of ${session.identity} acquires the fence${which}`);
    this.#tell({ type: 'acquired', session, shards });
  }

  #tell(event: DatabaseEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

function epochRow(shard: number): string {
  return `epoch of shard ${shard}`;
}

function readOnly(statement: string): Reply {
  return { error: { code: '25006', message: `cannot execute ${statement} in a read-only transaction` } };
}
