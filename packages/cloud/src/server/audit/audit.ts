import type { Database } from '../store/database.ts';
import { integer, text } from '../store/rows.ts';

/** Lifecycle event of a server. */
export interface AuditEvent {
  readonly event: 'created' | 'running' | 'failed' | 'deleting' | 'deleted';
  readonly id: string;
  readonly name: string;
  /** Idempotency key that the server was created with. */
  readonly key?: string | undefined;
  readonly message?: string | undefined;
}

interface Entry {
  readonly seq: number;
  readonly event: string;
}

/**
 * The audit log: one line of JSON for each lifecycle event of a server.
 *
 * Guarantees: an event is written only after the transaction that stored it is durable. If a crash or a full disk
 * prevents the write, the event is written at the next start or before the next event. After a crash right after the
 * write, the next start writes the event again, with the same `audit` number. If a line was truncated, its event is
 * repeated completely on the next line.
 *
 * Flow: `record` inside the transaction, then `flush` after the commit or `discard` after a rollback.
 */
export class Audit {
  readonly #database: Database;
  readonly #write: (line: string) => void;
  readonly #now: () => number;
  /** Events of the current transaction. */
  #uncommitted: Entry[] = [];
  /** Committed events that are not written to the log yet. */
  #unwritten: Entry[];
  /**
   * Number of the last event that was written to the log. The next transaction also deletes the rows up to this number.
   * So the deletion needs no transaction of its own.
   */
  #writtenSeq = 0;
  /** Whether the last line may be truncated. */
  #isTruncated = false;

  /** @param options.write appends a line; throws if it cannot */
  constructor(database: Database, options: { write: (line: string) => void; now: () => number }) {
    this.#database = database;
    this.#write = options.write;
    this.#now = options.now;
    const rows = database.connection.prepare('SELECT seq, event FROM audit ORDER BY seq').all();
    this.#unwritten = rows.map((row) => ({ seq: integer(row, 'seq'), event: text(row, 'event') }));
    this.flush();
  }

  /** Stores an event; part of a transaction. */
  record(event: AuditEvent): void {
    const { connection } = this.#database;
    const json = JSON.stringify({ time: new Date(this.#now()).toISOString(), ...event });
    const { lastInsertRowid } = connection.prepare('INSERT INTO audit (event) VALUES (?)').run(json);
    this.#uncommitted.push({ seq: Number(lastInsertRowid), event: json });
  }

  /** Deletes the rows of written events; part of a transaction. */
  deleteWritten(): void {
    if (this.#writtenSeq === 0) return;
    this.#database.connection.prepare('DELETE FROM audit WHERE seq <= ?').run(this.#writtenSeq);
  }

  /** Writes the committed events. Never throws: an event that cannot be written is kept for the next call. */
  flush(): void {
    this.#unwritten.push(...this.#uncommitted);
    this.#uncommitted = [];
    for (let next = this.#unwritten[0]; next !== undefined; next = this.#unwritten[0]) {
      const { seq, event } = next;
      try {
        this.#write(`${this.#isTruncated ? '\n' : ''}{"audit":${seq},${event.slice(1)}\n`);
      } catch {
        this.#isTruncated = true;
        return;
      }
      this.#isTruncated = false;
      this.#writtenSeq = seq;
      this.#unwritten.shift();
    }
  }

  /** Discards the events of a transaction that was rolled back. */
  discard(): void {
    this.#uncommitted = [];
  }
}
