import { createHash } from 'node:crypto';
import type { StatementSync } from 'node:sqlite';
import type { Clock } from '@vmwright/core';
import type { Labels, NewServer, ServerState } from '../../api/server.ts';
import { Audit } from '../audit/audit.ts';
import { Database } from './database.ts';
import { integer, type StoredServer, text, toServer, toState } from './rows.ts';

export interface StoreOptions {
  readonly file: string;
  readonly clock: Pick<Clock, 'now'>;
  /** How long the idempotency key of a deleted server is kept. */
  readonly keepKeysMs: number;
  readonly writeAudit: (line: string) => void;
}

/** Result of looking up a known idempotency key. */
export type KeyLookup =
  /** The key created this server with the same body. */
  | { readonly result: 'same'; readonly server: StoredServer }
  /** The key was used with a different body. */
  | { readonly result: 'reused' }
  /** The key's server was deleted, or is being deleted. */
  | { readonly result: 'gone'; readonly serverId: string };

export interface PageQuery {
  /** `seq` of the last server of the previous page; 0 for the first page. */
  readonly after: number;
  readonly limit: number;
  readonly name?: string | undefined;
  /** Selects servers that have all of these labels. A label without `value` matches any value. */
  readonly labels: readonly { readonly key: string; readonly value?: string | undefined }[];
}

/** State of a server as observed by the driver. */
export interface StateChange {
  readonly id: string;
  readonly state: 'running' | 'failed';
  readonly message?: string | undefined;
}

/**
 * Database of the servers and their idempotency keys.
 *
 * Guarantees: changes are durable when a method returns. All methods are synchronous. So if a caller reads and then
 * writes without an await in between, no other change happens in between.
 */
export class Store implements Disposable {
  readonly #options: StoreOptions;
  readonly #database: Database;
  readonly #audit: Audit;
  readonly #find: StatementSync;

  /** @throws StartError */
  constructor(options: StoreOptions) {
    this.#options = options;
    this.#database = new Database(options.file);
    const { connection } = this.#database;
    this.#find = connection.prepare('SELECT * FROM servers WHERE id = ?');
    this.#audit = new Audit(this.#database, { write: options.writeAudit, now: () => options.clock.now() });
  }

  find(id: string): StoredServer | undefined {
    const row = this.#find.get(id);
    return row && toServer(row);
  }

  findByName(name: string): StoredServer | undefined {
    const row = this.#database.connection.prepare('SELECT * FROM servers WHERE name = ?').get(name);
    return row && toServer(row);
  }

  all(): StoredServer[] {
    return this.#database.connection.prepare('SELECT * FROM servers ORDER BY seq').all().map(toServer);
  }

  /** Lists servers in order of creation. A server that exists during the whole listing is in exactly one page. */
  page({ after, limit, name, labels }: PageQuery): StoredServer[] {
    const conditions = ['seq > ?', ...(name === undefined ? [] : ['name = ?'])];
    const values: (string | number)[] = [after, ...(name === undefined ? [] : [name])];
    for (const { key, value } of labels) {
      conditions.push(
        `EXISTS (SELECT 1 FROM json_each(labels) AS label WHERE label.key = ?${value === undefined ? '' : ' AND label.value = ?'})`,
      );
      values.push(key, ...(value === undefined ? [] : [value]));
    }
    const sql = `SELECT * FROM servers WHERE ${conditions.join(' AND ')} ORDER BY seq LIMIT ?`;
    return this.#database.connection
      .prepare(sql)
      .all(...values, limit)
      .map(toServer);
  }

  countByState(): Map<ServerState, number> {
    const rows = this.#database.connection
      .prepare('SELECT state, count(*) AS count FROM servers GROUP BY state')
      .all();
    return new Map(rows.map((row) => [toState(text(row, 'state')), integer(row, 'count')]));
  }

  /** Looks up an idempotency key; undefined if it is unknown or expired. */
  lookupKey(key: string, wanted: NewServer): KeyLookup | undefined {
    const row = this.#database.connection.prepare('SELECT * FROM keys WHERE key = ?').get(key);
    if (row === undefined) return undefined;
    const serverId = text(row, 'server');
    const server = this.find(serverId);
    // The key has expired, but is not deleted yet.
    if (server === undefined && Number(row.deleted_at) <= this.#keyExpiry()) return undefined;
    // A server in the state `deleting` is reported as gone, so that the result does not depend on the speed of the
    // driver. This check precedes the comparison of the bodies: a client that repeats a create has to learn that the
    // server is gone.
    if (server === undefined || server.state === 'deleting') return { result: 'gone', serverId };
    if (text(row, 'fingerprint') !== fingerprintOf(wanted)) return { result: 'reused' };
    return { result: 'same', server };
  }

  /**
   * Creates a server in the state `building`.
   * @param wanted must have a name that is not taken
   * @param key must be unknown or expired
   */
  create(id: string, wanted: NewServer, key: string | undefined): StoredServer {
    const { name, labels = {} } = wanted;
    return this.#transaction(() => {
      const { connection } = this.#database;
      connection
        .prepare('INSERT INTO servers (id, name, labels, state, key, created_at) VALUES (?, ?, ?, ?, ?, ?)')
        .run(id, name, JSON.stringify(labels), 'building', key ?? null, this.#options.clock.now());
      if (key !== undefined) {
        // `REPLACE` overwrites an expired key that is not deleted yet.
        const sql = 'INSERT OR REPLACE INTO keys (key, fingerprint, server) VALUES (?, ?, ?)';
        connection.prepare(sql).run(key, fingerprintOf(wanted), id);
      }
      this.#audit.record({ event: 'created', id, name, key });
      return this.#require(id);
    });
  }

  /** Stores observed states in one transaction. Servers that are no longer building or running are skipped. */
  updateStates(changes: readonly StateChange[]): void {
    if (changes.length === 0) return;
    this.#transaction(() => {
      const update = this.#database.connection.prepare(
        "UPDATE servers SET state = ?, message = ? WHERE id = ? AND state IN ('building', 'running')",
      );
      for (const { id, state, message } of changes) {
        const { changes: changed } = update.run(state, message ?? null, id);
        if (changed === 0) continue;
        const { name, key } = this.#require(id);
        this.#audit.record({ event: state, id, name, key, message });
      }
    });
  }

  relabel(id: string, labels: Labels): StoredServer {
    return this.#transaction(() => {
      this.#database.connection
        .prepare('UPDATE servers SET labels = ? WHERE id = ?')
        .run(JSON.stringify(labels), id);
      return this.#require(id);
    });
  }

  /** Marks a server as deleting. Does nothing if it is already deleting. */
  beginDelete(id: string): void {
    this.#transaction(() => {
      const { connection } = this.#database;
      const now = this.#options.clock.now();
      const { changes } = connection
        .prepare(
          "UPDATE servers SET state = 'deleting', message = NULL, deleting_since = ? WHERE id = ? AND state <> 'deleting'",
        )
        .run(now, id);
      if (changes === 0) return;
      connection.prepare('UPDATE keys SET deleted_at = ? WHERE server = ?').run(now, id);
      const { name, key } = this.#require(id);
      this.#audit.record({ event: 'deleting', id, name, key });
    });
  }

  /** Stores why the deletion of a server is delayed. */
  setDeletionMessage(id: string, message: string): void {
    this.#transaction(() => {
      this.#database.connection
        .prepare("UPDATE servers SET message = ? WHERE id = ? AND state = 'deleting'")
        .run(message, id);
    });
  }

  /** Removes a server after its machine was removed. */
  remove(id: string): void {
    this.#transaction(() => {
      const { name, key } = this.#require(id);
      this.#database.connection.prepare('DELETE FROM servers WHERE id = ?').run(id);
      this.#audit.record({ event: 'deleted', id, name, key });
    });
  }

  /** Deletes expired idempotency keys. */
  deleteExpiredKeys(): void {
    this.#transaction(() => {
      this.#database.connection
        .prepare('DELETE FROM keys WHERE deleted_at <= ? AND server NOT IN (SELECT id FROM servers)')
        .run(this.#keyExpiry());
    });
  }

  /** Assigns the database to a driver, unless servers of another driver exist. @returns the driver of the database */
  claimDriver(name: string): string {
    const { connection } = this.#database;
    const stored = connection.prepare("SELECT value FROM about WHERE name = 'driver'").get();
    const current = stored && text(stored, 'value');
    if (current === name) return name;
    const count = connection.prepare('SELECT count(*) AS count FROM servers').get();
    if (current !== undefined && Number(count?.count) > 0) return current;
    connection.prepare("INSERT OR REPLACE INTO about (name, value) VALUES ('driver', ?)").run(name);
    return name;
  }

  [Symbol.dispose](): void {
    try {
      // Every transaction first deletes the audit events that are already in the log. Without this last transaction,
      // the next start would write them to the log again.
      this.#transaction(() => undefined);
    } catch {
      // The disk may be full. The next start then writes the audit events to the log again.
    }
    this.#database[Symbol.dispose]();
  }

  /** Returns the cutoff time: the keys of servers that were deleted at or before this time have expired. */
  #keyExpiry(): number {
    return this.#options.clock.now() - this.#options.keepKeysMs;
  }

  #require(id: string): StoredServer {
    const server = this.find(id);
    if (server === undefined) throw new Error(`server ${id} does not exist`);
    return server;
  }

  #transaction<T>(work: () => T): T {
    try {
      const result = this.#database.transaction(() => {
        this.#audit.deleteWritten();
        return work();
      });
      this.#audit.flush();
      return result;
    } catch (error) {
      this.#audit.discard();
      throw error;
    }
  }
}

/** Returns a digest of the request body that does not depend on the order of its labels. */
function fingerprintOf({ name, labels = {} }: NewServer): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([name, sorted]))
    .digest('hex');
}
