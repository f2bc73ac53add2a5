import { createHash } from 'node:crypto';
import type { StatementSync } from 'node:sqlite';
import type { Clock } from '@vmwright/core';
import type { Labels, NewServer, ServerState } from '../../api/server.ts';
import { Audit } from '../audit/audit.ts';
import { Database } from './database.ts';
import { integer, type StoredServer, serverIn, stateIn, text } from './rows.ts';

export interface StoreOptions {
  readonly file: string;
  readonly clock: Pick<Clock, 'now'>;
  /** How long the key of a deleted server is kept. */
  readonly keepKeysMs: number;
  readonly writeAudit: (line: string) => void;
}

/** What an idempotency key stands for already. */
export type Known =
  | { readonly is: 'same'; readonly server: StoredServer }
  /** It came with another body before. */
  | { readonly is: 'reused' }
  | { readonly is: 'gone'; readonly serverId: string };

export interface PageQuery {
  /** The `seq` of the last one of the page before. */
  readonly after: number;
  readonly limit: number;
  readonly name?: string | undefined;
  /** Those that have all of these; without a value: any. */
  readonly labels: readonly { readonly key: string; readonly value?: string | undefined }[];
}

/** What a driver has made of a server. */
export interface Change {
  readonly id: string;
  readonly state: 'running' | 'failed';
  readonly message?: string | undefined;
}

/**
 * The servers there are, and the keys with which they were created.
 *
 * Guarantees: what a method has returned from survives a kill. All methods are synchronous: between a look and the write
 * that depends on it nothing else happens, as long as nobody awaits in between.
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
    return row && serverIn(row);
  }

  findByName(name: string): StoredServer | undefined {
    const row = this.#database.connection.prepare('SELECT * FROM servers WHERE name = ?').get(name);
    return row && serverIn(row);
  }

  all(): StoredServer[] {
    return this.#database.connection.prepare('SELECT * FROM servers ORDER BY seq').all().map(serverIn);
  }

  /** In the order of their creation: one that is there throughout is in exactly one page of a walk. */
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
      .map(serverIn);
  }

  countByState(): Map<ServerState, number> {
    const rows = this.#database.connection
      .prepare('SELECT state, count(*) AS count FROM servers GROUP BY state')
      .all();
    return new Map(rows.map((row) => [stateIn(text(row, 'state')), integer(row, 'count')]));
  }

  /** What became of a create with this key, if there was one. */
  known(key: string, wanted: NewServer): Known | undefined {
    const row = this.#database.connection.prepare('SELECT * FROM keys WHERE key = ?').get(key);
    if (row === undefined) return undefined;
    const serverId = text(row, 'server');
    const server = this.find(serverId);
    // Past its time, though nobody has cleared it away yet.
    if (server === undefined && Number(row.deleted_at) <= this.#oldestKey()) return undefined;
    // From the moment the deletion was promised: what the answer is must not depend on how fast the driver is. Whatever
    // the body is: who asks again for what is gone wants to know that.
    if (server === undefined || server.state === 'deleting') return { is: 'gone', serverId };
    if (text(row, 'fingerprint') !== fingerprintOf(wanted)) return { is: 'reused' };
    return { is: 'same', server };
  }

  /** @param wanted with a name that is free, and a key that is not known */
  create(id: string, wanted: NewServer, key: string | undefined): StoredServer {
    const { name, labels = {} } = wanted;
    return this.#transaction(() => {
      const { connection } = this.#database;
      connection
        .prepare('INSERT INTO servers (id, name, labels, state, key, created_at) VALUES (?, ?, ?, ?, ?, ?)')
        .run(id, name, JSON.stringify(labels), 'building', key ?? null, this.#options.clock.now());
      if (key !== undefined) {
        // One whose time was over may still lie here.
        const sql = 'INSERT OR REPLACE INTO keys (key, fingerprint, server) VALUES (?, ?, ?)';
        connection.prepare(sql).run(key, fingerprintOf(wanted), id);
      }
      this.#audit.record({ event: 'created', id, name, key });
      return this.#existing(id);
    });
  }

  /** Stores what has become of building and running servers, all at once. One that is deleted meanwhile stays so. */
  settle(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    this.#transaction(() => {
      const update = this.#database.connection.prepare(
        "UPDATE servers SET state = ?, message = ? WHERE id = ? AND state IN ('building', 'running')",
      );
      for (const { id, state, message } of changes) {
        const { changes: changed } = update.run(state, message ?? null, id);
        if (changed === 0) continue;
        const { name, key } = this.#existing(id);
        this.#audit.record({ event: state, id, name, key, message });
      }
    });
  }

  relabel(id: string, labels: Labels): StoredServer {
    return this.#transaction(() => {
      this.#database.connection
        .prepare('UPDATE servers SET labels = ? WHERE id = ?')
        .run(JSON.stringify(labels), id);
      return this.#existing(id);
    });
  }

  /** The deletion is promised from here on. Does nothing for one that is being deleted. */
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
      const { name, key } = this.#existing(id);
      this.#audit.record({ event: 'deleting', id, name, key });
    });
  }

  /** Says what stands in the way of a deletion. */
  noteWhileDeleting(id: string, message: string): void {
    this.#transaction(() => {
      this.#database.connection
        .prepare("UPDATE servers SET message = ? WHERE id = ? AND state = 'deleting'")
        .run(message, id);
    });
  }

  /** The machine is gone, and so is the server. */
  remove(id: string): void {
    this.#transaction(() => {
      const { name, key } = this.#existing(id);
      this.#database.connection.prepare('DELETE FROM servers WHERE id = ?').run(id);
      this.#audit.record({ event: 'deleted', id, name, key });
    });
  }

  /** Clears away keys whose time is over. */
  dropOldKeys(): void {
    this.#transaction(() => {
      this.#database.connection
        .prepare('DELETE FROM keys WHERE deleted_at <= ? AND server NOT IN (SELECT id FROM servers)')
        .run(this.#oldestKey());
    });
  }

  /** The driver whose machines the servers are; the given one from now on, unless there are servers of another. */
  driver(name: string): string {
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
      this.#transaction(() => undefined); // what was told is known to be told: the next start does not repeat it
    } catch {
      // A disk that takes nothing any more: then it is repeated.
    }
    this.#database[Symbol.dispose]();
  }

  #oldestKey(): number {
    return this.#options.clock.now() - this.#options.keepKeysMs;
  }

  #existing(id: string): StoredServer {
    const server = this.find(id);
    if (server === undefined) throw new Error(`there is no server ${id}`);
    return server;
  }

  #transaction<T>(work: () => T): T {
    try {
      const result = this.#database.transaction(() => {
        this.#audit.drop();
        return work();
      });
      this.#audit.tell();
      return result;
    } catch (error) {
      this.#audit.forget();
      throw error;
    }
  }
}

/** The same for the same server, in whatever order its labels come. */
function fingerprintOf({ name, labels = {} }: NewServer): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([name, sorted]))
    .digest('hex');
}
