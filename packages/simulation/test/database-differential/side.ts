import { type Database, DatabaseError, type Session } from '@vmwright/operator';
import type { TableRow } from '../../src/database/table.ts';
import { FUTURE_MS, type Operation } from './operations.ts';

/** Result of an operation: a value, the `scope` of a DatabaseError, or `skipped` if the operation was not possible. */
export type Result = { readonly ok: unknown } | { readonly error: string } | 'skipped';

/** Actions of other clients of the database. */
export interface OtherClients {
  insert(row: TableRow): Promise<void>;
  softDelete(id: string): Promise<void>;
  /** Locks a row until `unlock` is called. */
  lock(id: string): Promise<void>;
  unlock(id: string): Promise<void>;
  table(): Promise<readonly TableRow[]>;
}

/** One of the two databases: PostgreSQL or the model. */
export class Side implements AsyncDisposable {
  readonly #database: Database;
  readonly #others: OtherClients;
  readonly #sessions = new Map<number, Session>();
  readonly #rows = new Map<string, boolean>();
  #locked: string | undefined;

  constructor(database: Database, others: OtherClients) {
    this.#database = database;
    this.#others = others;
  }

  async perform(operation: Operation): Promise<Result> {
    if (!('session' in operation)) return this.#change(operation);
    if (operation.do === 'open') {
      await this.#sessions.get(operation.session)?.[Symbol.asyncDispose]();
      this.#sessions.set(operation.session, await this.#database.open(new AbortController().signal));
      return { ok: 'opened' };
    }
    const session = this.#sessions.get(operation.session);
    if (session === undefined) return 'skipped';
    try {
      return { ok: await call(session, operation) };
    } catch (error) {
      if (error instanceof DatabaseError) return { error: error.scope };
      throw error;
    }
  }

  /** Returns the table without the exact times of updates. */
  async table(): Promise<readonly unknown[]> {
    const rows = await this.#others.table();
    return rows
      .map(({ updatedAt, deletedAt, ...row }) => ({
        ...row,
        updated: updatedAt === FUTURE_MS ? 'in the future' : (updatedAt ?? 0) > (row.createdAt ?? 0) + 1_000,
        isDeleted: deletedAt !== null,
      }))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.#sessions.values()) await session[Symbol.asyncDispose]();
    if (this.#locked !== undefined) await this.#others.unlock(this.#locked);
  }

  async #change(operation: Exclude<Operation, { readonly session: number }>): Promise<Result> {
    const id = 'row' in operation ? operation.row.id : operation.id;
    const exists = this.#rows.has(id);
    switch (operation.do) {
      case 'insert':
        if (exists) return 'skipped';
        this.#rows.set(id, true);
        await this.#others.insert(operation.row);
        break;
      case 'softDelete':
        if (!exists || this.#locked === id) return 'skipped';
        await this.#others.softDelete(id);
        break;
      case 'lock':
        if (!exists || this.#locked !== undefined) return 'skipped';
        this.#locked = id;
        await this.#others.lock(id);
        break;
      case 'unlock':
        if (this.#locked === undefined) return 'skipped';
        await this.#others.unlock(this.#locked);
        this.#locked = undefined;
        break;
    }
    return { ok: operation.do };
  }
}

type SessionCall = Exclude<Extract<Operation, { readonly session: number }>, { readonly do: 'open' }>;

async function call(session: Session, operation: SessionCall): Promise<unknown> {
  switch (operation.do) {
    case 'acquire':
      return session.acquire(operation.shards, true, new AbortController().signal);
    case 'release':
      return session.release(operation.shards);
    case 'rows':
      return byId((await Array.fromAsync(session.rows())).flat());
    case 'find':
      return byId(await session.find(operation.names));
    case 'write': {
      const { written, skipped } = await session.write(operation.writes, operation.shards);
      return { written: [...written].sort(), skipped: [...skipped].sort() };
    }
    case 'close':
      return session[Symbol.asyncDispose]();
    default:
      return session.check();
  }
}

function byId<T extends { readonly id: string }>(rows: readonly T[]): readonly T[] {
  return [...rows].sort((a, b) => (a.id < b.id ? -1 : 1));
}
