import type { Row } from './rows.ts';

/** The database with the table `vms`. */
export interface Database {
  /**
   * Opens a session.
   * @param signal aborts the attempt
   * @throws DatabaseError
   */
  open(signal: AbortSignal): Promise<Session>;
}

/** Status to write to a row. */
export interface StatusWrite {
  readonly id: string;
  readonly status: string;
}

/** Result of a batch. Each number is the position of a write in the batch. */
export interface BatchResult {
  /** Rows whose status was changed. */
  readonly written: readonly number[];
  /** Rows that were not written: they do not exist, are soft-deleted, or are locked by another transaction. */
  readonly skipped: readonly number[];
}

/**
 * A session with the database. A call that fails rejects with a `DatabaseError`. After an error with the scope
 * `session`, the session cannot be used any more.
 *
 * Fence: a batch is written only while the session holds the shards of the batch, which `acquire` claims. When a
 * session of another replica acquires a shard, `acquire` resolves only after every batch of the previous holder has
 * ended. So a replica that was replaced cannot write after its successor has read the table.
 */
export interface Session extends AsyncDisposable {
  /**
   * Claims shards. Resolves when no other session can write for them any more.
   * @param takeOver whether to take shards from a session that does not release them. If false, waits for their release
   *   for a limited time. With the fence mode `table`, takes them in any case
   */
  acquire(shards: readonly number[], takeOver: boolean, signal: AbortSignal): Promise<void>;
  /** Releases shards that this session holds. */
  release(shards: readonly number[]): Promise<void>;
  /** Yields all rows that are not soft-deleted, in pages. */
  rows(): AsyncIterable<readonly Row[]>;
  /** Returns the rows that have one of these VM names and are not soft-deleted. Reads them with one statement. */
  find(names: readonly string[]): Promise<readonly Row[]>;
  /** Checks that the database responds and that this session still holds its shards. */
  check(): Promise<void>;
  /** Writes the statuses of rows that belong to the given shards, in one or two transactions. */
  write(writes: readonly StatusWrite[], shards: readonly number[]): Promise<BatchResult>;
}

/**
 * Scope of a failure:
 * - `session`: the database is unreachable, is read-only, or lacks the table.
 * - `fence`: another replica has taken over.
 * - `rows`: the database rejected a row of the batch, for example because of a constraint.
 */
export type FailureScope = 'session' | 'fence' | 'rows';

/** Failure of a database call. The message contains no credentials. */
export class DatabaseError extends Error {
  readonly code: string;
  readonly scope: FailureScope;

  /** @param code SQLSTATE, or a system error code such as ECONNREFUSED */
  constructor(message: string, code: string, scope: FailureScope, options?: ErrorOptions) {
    super(message, options);
    this.name = 'DatabaseError';
    this.code = code;
    this.scope = scope;
  }
}

/** Returns whether the database rejected a batch because of one of its rows. */
export function isRowError(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.scope === 'rows';
}
