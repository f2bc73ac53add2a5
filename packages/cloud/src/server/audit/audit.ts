import type { Database } from '../store/database.ts';
import { integer, text } from '../store/rows.ts';

/** Something that happened to a server. */
export interface AuditEvent {
  readonly event: 'created' | 'running' | 'failed' | 'deleting' | 'deleted';
  readonly id: string;
  readonly name: string;
  /** The idempotency key that it was created with. */
  readonly key?: string | undefined;
  readonly message?: string | undefined;
}

interface Recorded {
  readonly seq: number;
  readonly event: string;
}

/**
 * The audit log: a JSON object a line for each thing that happened to a server.
 *
 * Guarantees: an event is written after it is durable, and it is written: one that a crash or a full disk kept back is
 * written at the next start, or with the next event. A crash right after the writing lets it be written twice, under the
 * same `audit` number; half a line that was all that had room is followed by the whole.
 *
 * Flow: `record` within the transaction that makes it so, `tell` after it.
 */
export class Audit {
  readonly #database: Database;
  readonly #write: (line: string) => void;
  readonly #now: () => number;
  /** In the transaction that is under way. */
  #recorded: Recorded[] = [];
  /** Durable, and not written yet. */
  #untold: Recorded[];
  /** What is written up to here is dropped with the next transaction, which is cheaper than one for that alone. */
  #written = 0;
  /** The last line may not be whole. */
  #isCut = false;

  /** @param options.write throws where it could not */
  constructor(database: Database, options: { write: (line: string) => void; now: () => number }) {
    this.#database = database;
    this.#write = options.write;
    this.#now = options.now;
    const left = database.connection.prepare('SELECT seq, event FROM audit ORDER BY seq').all();
    this.#untold = left.map((row) => ({ seq: integer(row, 'seq'), event: text(row, 'event') }));
    this.tell();
  }

  record(event: AuditEvent): void {
    const { connection } = this.#database;
    const json = JSON.stringify({ time: new Date(this.#now()).toISOString(), ...event });
    const { lastInsertRowid } = connection.prepare('INSERT INTO audit (event) VALUES (?)').run(json);
    this.#recorded.push({ seq: Number(lastInsertRowid), event: json });
  }

  /** Drops from the database what is written already; part of a transaction. */
  drop(): void {
    if (this.#written === 0) return;
    this.#database.connection.prepare('DELETE FROM audit WHERE seq <= ?').run(this.#written);
  }

  /** Writes what is durable now, as far as it can be written: what has happened has, also when nobody can be told. */
  tell(): void {
    this.#untold.push(...this.#recorded);
    this.#recorded = [];
    for (let next = this.#untold[0]; next !== undefined; next = this.#untold[0]) {
      const { seq, event } = next;
      try {
        this.#write(`${this.#isCut ? '\n' : ''}{"audit":${seq},${event.slice(1)}\n`);
      } catch {
        this.#isCut = true;
        return;
      }
      this.#isCut = false;
      this.#written = seq;
      this.#untold.shift();
    }
  }

  /** The transaction has failed: nothing of it happened. */
  forget(): void {
    this.#recorded = [];
  }
}
