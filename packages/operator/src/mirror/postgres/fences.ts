import { type Clock, wait } from '@vmwright/runtime';
import { DatabaseError } from '../database.ts';

/** Runs a statement in the session. */
export type Query = (
  text: string,
  values: readonly unknown[],
) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** Keeps other sessions from writing rows of the same shards. */
export interface SqlFence {
  /** Whether statements may use the state of the session: prepared statements and settings. */
  readonly isSessionBound: boolean;
  acquire(query: Query, shards: readonly number[], takeOver: boolean, signal: AbortSignal): Promise<void>;
  release(query: Query, shards: readonly number[]): Promise<void>;
  /** Shards that this session has acquired. */
  readonly held: ReadonlySet<number>;
  /**
   * Query that returns one row with the column `ok`: whether this session holds the shards. Its parameters start at $1.
   */
  readonly guard: string;
  guardValues(shards: readonly number[]): readonly unknown[];
}

/** First key of the advisory locks; the second is the shard. */
const LOCK_CLASS = 0x5356_4d43;
/** Session setting with the token of the fence that last acquired locks in this server session. */
const TOKEN = 'ssvirt_vm_controller.token';
/** Time that another session gets to release its locks before it is terminated. */
const RELEASE_MS = 2_000;
const RETRY_MS = 200;
/** If `takeOver` is false, no session is terminated. `acquire` fails if the locks are not released within this time. */
const MAX_WAIT_MS = 30_000;

/**
 * Fence that consists of session-level advisory locks. The batch statement checks that its own server process holds the
 * locks. A pooler in transaction mode, such as PgBouncer, may distribute statements over several server sessions.
 * Batches then fail instead of bypassing the fence.
 *
 * Such a pooler may also let two replicas use the same server session. Both could then acquire the same lock, because
 * PostgreSQL lets a session acquire its own lock again. So each fence stores a token in the server session when it
 * acquires locks, and the batch statement checks this token.
 *
 * Take-over: the server session of the previous holder is terminated. PostgreSQL commits or rolls back its last
 * statement, and then releases its locks. Both sessions must belong to the same database role, because an ordinary role
 * can terminate only its own sessions.
 */
export class SessionLockFence implements SqlFence {
  readonly isSessionBound = true;
  readonly held = new Set<number>();
  readonly guard = `
    SELECT count(*) = cardinality($1::int[]) AS ok FROM pg_locks
    WHERE locktype = 'advisory' AND classid = ${LOCK_CLASS} AND objid = ANY ($1::int[]) AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND pid = pg_backend_pid() AND granted AND current_setting('${TOKEN}', true) = $2`;
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  /** Random value that this fence stores in its server session; empty before the first acquisition. */
  #token = '';

  constructor(clock: Pick<Clock, 'monotonic' | 'after'>) {
    this.#clock = clock;
  }

  guardValues(shards: readonly number[]): readonly unknown[] {
    return [shards, this.#token];
  }

  async acquire(
    query: Query,
    shards: readonly number[],
    takeOver: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const since = this.#clock.monotonic();
    if (this.#token === '') this.#token = await newToken(query);
    for (;;) {
      const missing = shards.filter((shard) => !this.held.has(shard));
      const got = await query(
        `WITH owner AS MATERIALIZED (SELECT set_config('${TOKEN}', $2, false))
         SELECT shard FROM owner, unnest($1::int[]) AS shard WHERE pg_try_advisory_lock(${LOCK_CLASS}, shard)`,
        [missing, this.#token],
      );
      for (const { shard } of got) this.held.add(Number(shard));
      if (got.length === missing.length) return;
      if (takeOver && this.#clock.monotonic() - since >= RELEASE_MS)
        await this.#terminateHolders(query, shards);
      if (!takeOver && this.#clock.monotonic() - since >= MAX_WAIT_MS) throw fenceHeld();
      await wait(this.#clock, RETRY_MS, signal);
    }
  }

  async release(query: Query, shards: readonly number[]): Promise<void> {
    for (const shard of shards) this.held.delete(shard);
    await query(`SELECT pg_advisory_unlock(${LOCK_CLASS}, shard) FROM unnest($1::int[]) AS shard`, [shards]);
  }

  async #terminateHolders(query: Query, shards: readonly number[]): Promise<void> {
    const missing = shards.filter((shard) => !this.held.has(shard));
    await query(
      `SELECT pg_terminate_backend(pid) FROM (
         SELECT DISTINCT pid FROM pg_locks
         WHERE locktype = 'advisory' AND classid = ${LOCK_CLASS} AND objid = ANY ($1::int[]) AND objsubid = 2
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND pid <> pg_backend_pid() AND granted) AS holder`,
      [missing],
    );
  }
}

/** Returns a random value. PostgreSQL generates it, because replicas may have the same name and clock. */
async function newToken(query: Query): Promise<string> {
  const [row] = await query(
    'SELECT md5(random()::text || clock_timestamp()::text || pg_backend_pid()) AS token',
    [],
  );
  return String(row?.token);
}

/** Table that the mirror creates, with the epoch of the current holder of each shard. */
export const FENCE_TABLE = 'ssvirt_vm_controller_fence';

/**
 * Fence that stores an epoch for each shard in `FENCE_TABLE`. It needs no session state, so it works through PgBouncer
 * in transaction mode. Each acquisition of a shard increments its epoch. The batch statement locks the epoch row in
 * share mode. It writes only if the epoch is still the one that this session acquired.
 */
export class EpochFence implements SqlFence {
  readonly isSessionBound = false;
  readonly guard = `
    SELECT count(*) = cardinality($1::int[]) AS ok FROM (
      SELECT 1 FROM ${FENCE_TABLE} AS fence
      JOIN unnest($1::int[], $2::bigint[]) AS own(shard, epoch) ON fence.shard = own.shard AND fence.epoch = own.epoch
      FOR SHARE OF fence) AS current`;
  readonly #epochs = new Map<number, string>();
  readonly #holder: string;

  /** @param holder name of this replica, for people who read the table */
  constructor(holder: string) {
    this.#holder = holder;
  }

  get held(): ReadonlySet<number> {
    return new Set(this.#epochs.keys());
  }

  guardValues(shards: readonly number[]): readonly unknown[] {
    return [shards, shards.map((shard) => this.#epochs.get(shard) ?? '0')];
  }

  async acquire(query: Query, shards: readonly number[]): Promise<void> {
    const notCreated = await this.#createTable(query);
    const rows = await query(
      `INSERT INTO ${FENCE_TABLE} AS fence SELECT shard, 1, $2, now() FROM unnest($1::int[]) AS shard ORDER BY shard
       ON CONFLICT (shard) DO UPDATE SET epoch = fence.epoch + 1, holder = excluded.holder, acquired_at = now()
       RETURNING shard, epoch::text`,
      [shards, this.#holder],
    ).catch((error: unknown) => {
      throw hasCode(error, [UNDEFINED_TABLE]) && notCreated !== undefined ? notCreated : error;
    });
    for (const { shard, epoch } of rows) this.#epochs.set(Number(shard), String(epoch));
  }

  async release(_: Query, shards: readonly number[]): Promise<void> {
    for (const shard of shards) this.#epochs.delete(shard);
  }

  /** Creates the table. @returns the error if the statement failed but the table may exist; undefined on success */
  async #createTable(query: Query): Promise<DatabaseError | undefined> {
    try {
      await query(
        `CREATE TABLE IF NOT EXISTS ${FENCE_TABLE} (
           shard integer PRIMARY KEY, epoch bigint NOT NULL, holder text NOT NULL, acquired_at timestamptz NOT NULL)`,
        [],
      );
      return undefined;
    } catch (error) {
      if (hasCode(error, MAY_EXIST)) return error;
      throw error;
    }
  }
}

const UNDEFINED_TABLE = '42P01';
/**
 * SQLSTATEs of `CREATE TABLE IF NOT EXISTS` after which the table may exist nevertheless: the role is not allowed to
 * create tables, or another session is creating the same table.
 */
const MAY_EXIST = ['42501', '42P07', '42710', '23505'];

function hasCode(error: unknown, codes: readonly string[]): error is DatabaseError {
  return error instanceof DatabaseError && codes.includes(error.code);
}

function fenceHeld(): DatabaseError {
  const message =
    'another session holds the advisory lock; without leader election only one replica may run (pg_locks shows the session)';
  return new DatabaseError(message, 'FENCE_HELD', 'session');
}
