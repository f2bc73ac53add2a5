import { type Clock, wait } from '@vmwright/runtime';
import type { Client } from 'pg';
import { type BatchResult, DatabaseError, type Session, type StatusWrite } from '../database.ts';
import { type Row, vappUuid } from '../rows.ts';
import { LOCK_NOT_AVAILABLE, toDatabaseError } from './errors.ts';
import type { Query, SqlFence } from './fences.ts';

const PAGE_ROWS = 5_000;
/** Maximum time to wait for the end of a connection. */
const CLOSE_MS = 1_000;

const COLUMNS = `id, vm_name, coalesce(namespace, '') AS namespace, vapp_id, coalesce(status, '') AS status,
  coalesce(extract(epoch FROM created_at) * 1000, 0)::float8 AS created_at`;

const PAGE = `SELECT ${COLUMNS} FROM vms
  WHERE deleted_at IS NULL AND vm_name IS NOT NULL AND id > $1 ORDER BY id LIMIT ${PAGE_ROWS}`;

const FIND = `SELECT ${COLUMNS} FROM vms WHERE deleted_at IS NULL AND vm_name = ANY ($1::text[])`;

/** Session with PostgreSQL over one connection. */
export class PostgresSession implements Session {
  readonly #client: Client;
  readonly #clock: Pick<Clock, 'after'>;
  readonly #fence: SqlFence;
  readonly #write: string;
  readonly #writeUnlocked: string;
  #failure: DatabaseError | undefined;
  /** Resolves when the last statement in the queue has ended, even if it failed. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param client connected client, which the session closes */
  constructor(client: Client, fence: SqlFence, clock: Pick<Clock, 'after'>) {
    this.#client = client;
    this.#clock = clock;
    this.#fence = fence;
    this.#write = writeStatement(fence);
    this.#writeUnlocked = writeUnlockedStatement(fence);
    client.on('error', (error) => (this.#failure ??= toDatabaseError(error)));
    client.on(
      'end',
      () => (this.#failure ??= new DatabaseError('the connection was closed', 'CLOSED', 'session')),
    );
  }

  acquire(shards: readonly number[], takeOver: boolean, signal: AbortSignal): Promise<void> {
    return this.#fence.acquire(this.#query, shards, takeOver, signal);
  }

  release(shards: readonly number[]): Promise<void> {
    return this.#fence.release(this.#query, shards);
  }

  async *rows(): AsyncGenerator<readonly Row[], void, undefined> {
    for (let after = ''; ; ) {
      const page = (await this.#query(PAGE, [after])).map(toRow);
      yield page;
      const last = page.at(-1);
      if (page.length < PAGE_ROWS || last === undefined) return;
      after = last.id;
    }
  }

  async find(names: readonly string[]): Promise<readonly Row[]> {
    return (await this.#query(FIND, [names])).map(toRow);
  }

  async check(): Promise<void> {
    const shards = [...this.#fence.held];
    const [row] = await this.#query(this.#fence.guard, this.#fence.guardValues(shards));
    if (row?.ok !== true) throw fenceLost(this.#fence);
  }

  /**
   * Writes the rows that no other transaction has locked. The first statement writes nothing if one of the rows is
   * locked. The second statement writes the remaining rows and skips locked ones. Usually, no rows remain. No other
   * statement of the session runs between the two: the release of a shard would make the second one fail.
   */
  write(writes: readonly StatusWrite[], shards: readonly number[]): Promise<BatchResult> {
    const guard = this.#fence.guardValues(shards); // read now, because a later `release` may change the values
    return this.#enqueue(async (run) => {
      const done = new Set((await this.#tryWrite(run, this.#writeUnlocked, writes, guard))?.written);
      const rest = writes.flatMap((_, at) => (done.has(at) ? [] : [at]));
      if (rest.length === 0) return { written: [...done], skipped: [] };
      const some = rest.flatMap((at) => writes[at] ?? []);
      const { written, skipped } = await this.#writeWith(run, this.#write, some, guard);
      const original = (position: number) => rest[position] ?? 0;
      return { written: [...done, ...written.map(original)], skipped: skipped.map(original) };
    });
  }

  /**
   * Runs a statement that writes rows. If a row is locked or violates a constraint, the statement fails as a whole.
   * `write` then runs the second statement, which skips locked rows. The second statement may succeed even after a
   * violation: PostgreSQL checks constraints before it locks a row, so the row with the violation may be locked.
   * @returns undefined if a row is locked or violates a constraint
   */
  async #tryWrite(
    run: Query,
    text: string,
    writes: readonly StatusWrite[],
    guard: readonly unknown[],
  ): Promise<BatchResult | undefined> {
    try {
      return await this.#writeWith(run, text, writes, guard);
    } catch (error) {
      const isRepeated =
        error instanceof DatabaseError && (error.code === LOCK_NOT_AVAILABLE || error.scope === 'rows');
      if (isRepeated) return undefined;
      throw error;
    }
  }

  async #writeWith(
    run: Query,
    text: string,
    writes: readonly StatusWrite[],
    guard: readonly unknown[],
  ): Promise<BatchResult> {
    const values = [...guard, writes.map(({ id }) => id), writes.map(({ status }) => status)];
    const [row] = await run(text, values);
    if (row?.held !== true) throw fenceLost(this.#fence);
    return { written: positions(row.written), skipped: positions(row.skipped) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#failure ??= new DatabaseError('the session was closed', 'CLOSED', 'session');
    // Waits at most `CLOSE_MS` for the server to close the connection, because the server may have vanished.
    const ending = this.#client.end().catch(() => undefined);
    await Promise.race([ending, wait(this.#clock, CLOSE_MS)]);
  }

  readonly #query: Query = (text, values) => this.#enqueue((run) => run(text, values));

  /** Runs statements after all earlier ones have ended, because pg supports one statement at a time per client. */
  #enqueue<T>(work: (run: Query) => Promise<T>): Promise<T> {
    const result = this.#last.then(() => work(this.#run));
    this.#last = result.catch(() => undefined);
    return result;
  }

  readonly #run: Query = async (text, values) => {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      // A prepared statement exists in one server session only, so it cannot be used with a pooler in transaction mode.
      const name = this.#fence.isSessionBound ? { name: nameOf(text) } : {};
      const result = await this.#client.query<Record<string, unknown>>({
        text,
        values: [...values],
        ...name,
      });
      return result.rows;
    } catch (error) {
      throw this.#failure ?? toDatabaseError(error);
    }
  };
}

/** Names of prepared statements by their text. */
const NAMES = new Map<string, string>();

function nameOf(text: string): string {
  const name = NAMES.get(text) ?? `vmwright-${NAMES.size}`;
  NAMES.set(text, name);
  return name;
}

/** Time that `writeUnlockedStatement` waits for the lock of a row: the shortest timeout that PostgreSQL allows. */
const LOCK_TIMEOUT_MS = 1;

/**
 * Returns the statement that writes a batch if no row is locked. If a row is locked, the statement fails with
 * `LOCK_NOT_AVAILABLE` and writes nothing.
 *
 * The lock timeout applies to this transaction only. The locks of the table and of the fence are taken before the
 * timeout is set, so it does not apply to them. The timeout is shorter than the deadlock timeout, so a deadlock also
 * ends with `LOCK_NOT_AVAILABLE`.
 *
 * A statement that succeeds leaves a row unwritten if the row already has the status, does not exist or is
 * soft-deleted. It also does so if another transaction changed the row at the same moment.
 */
function writeUnlockedStatement(fence: SqlFence): string {
  return `
    WITH held AS MATERIALIZED (
      SELECT guard.ok, set_config('lock_timeout', '${LOCK_TIMEOUT_MS}', true) AS lock_timeout
      FROM (${fence.guard}) AS guard),
    new AS MATERIALIZED (${given(fence)}),
    written AS (
      UPDATE vms SET status = new.status, updated_at = greatest(now(), vms.updated_at)
      FROM held, new
      WHERE held.ok AND held.lock_timeout IS NOT NULL
        AND vms.id = new.id AND vms.deleted_at IS NULL AND vms.status IS DISTINCT FROM new.status
      RETURNING new.position)
    SELECT (SELECT ok FROM held) AS held, ARRAY (SELECT position::int - 1 FROM written) AS written`;
}

/**
 * Returns the statement that writes all rows of a batch, except rows that another transaction has locked. To wait for
 * locked rows would delay all other rows. It could also cause a deadlock with a transaction that locks rows in another
 * order.
 */
function writeStatement(fence: SqlFence): string {
  return `
    WITH held AS MATERIALIZED (${fence.guard}),
    new AS MATERIALIZED (${given(fence)}),
    found AS MATERIALIZED (
      SELECT new.position, new.status, vms.id, vms.status AS known
      FROM held, new JOIN vms ON vms.id = new.id
      WHERE held.ok AND vms.deleted_at IS NULL
      FOR NO KEY UPDATE OF vms SKIP LOCKED),
    written AS (
      UPDATE vms SET status = found.status, updated_at = greatest(now(), vms.updated_at)
      FROM found WHERE vms.id = found.id AND found.known IS DISTINCT FROM found.status
      RETURNING found.position)
    SELECT (SELECT ok FROM held) AS held,
      ARRAY (SELECT position::int - 1 FROM written) AS written,
      ARRAY (SELECT position::int - 1 FROM new WHERE position NOT IN (SELECT position FROM found)) AS skipped`;
}

/**
 * Returns the query that reads the ids and statuses of a batch from the parameters. The parameters of the fence come
 * first.
 */
function given(fence: SqlFence): string {
  const first = fence.guardValues([]).length + 1;
  return `
      SELECT id, status, position FROM unnest($${first}::text[], $${first + 1}::text[])
        WITH ORDINALITY AS given(id, status, position)`;
}

function fenceLost({ isSessionBound }: SqlFence): DatabaseError {
  const cause = isSessionBound
    ? 'the session no longer holds its advisory lock: another replica has taken over, or a pooler in transaction mode distributes its statements over several server sessions (use the fence "table")'
    : 'another replica has acquired the shard: its epoch in the fence table has changed';
  return new DatabaseError(cause, 'FENCE_LOST', 'fence');
}

function positions(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.map(Number) : [];
}

function toRow(row: Readonly<Record<string, unknown>>): Row {
  return {
    id: String(row.id),
    vmName: String(row.vm_name),
    namespace: shared(String(row.namespace)),
    vapp: vappUuid(String(row.vapp_id)),
    status: shared(String(row.status)),
    createdAt: Number(row.created_at),
  };
}

/** Namespaces and statuses repeat in many rows, so one copy of each text is shared to save memory. */
const SHARED = new Map<string, string>();
const MAX_SHARED = 10_000;

function shared(text: string): string {
  const known = SHARED.get(text);
  if (known !== undefined) return known;
  if (SHARED.size < MAX_SHARED) SHARED.set(text, text);
  return text;
}
