import { realpathSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from '@vmwright/core';
import { StartError } from '../errors.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';

/**
 * A SQLite file with our tables in it, for this process alone.
 *
 * Guarantees: what a transaction has done is on the disk when it returns (WAL, `synchronous` FULL), or nothing of it is.
 *
 * The claim on the file is a lock on another one beside it, so that others can still read the data (a backup, an
 * auditor). The system gives it up with the process, however that ends.
 */
export class Database implements Disposable {
  readonly #claim: DatabaseSync;
  readonly connection: DatabaseSync;

  /** @throws StartError when it is another's, or in use, or cannot be had */
  constructor(file: string) {
    this.#claim = claim(file);
    try {
      this.connection = new DatabaseSync(file);
      prepare(this.connection, file);
    } catch (error) {
      this.#claim.close();
      if (error instanceof StartError) throw error;
      throw new StartError('STORE', `${file} cannot be used: ${messageOf(error)}`, { cause: error });
    }
  }

  /** All that `work` writes, or nothing. */
  transaction<T>(work: () => T): T {
    this.connection.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.connection.exec('COMMIT');
      return result;
    } catch (error) {
      // A full disk may have ended it already.
      if (this.connection.isTransaction) this.connection.exec('ROLLBACK');
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.connection.close();
    this.#claim.close();
  }
}

function claim(file: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(`${resolved(file)}.lock`);
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock?.close();
    const inUse = messageOf(error).includes('locked');
    const why = inUse
      ? `${file} is in use by another vmwright-cloud; a file is served by one process at a time`
      : `${file} cannot be used: ${messageOf(error)}; its folder must be there, and ours to write`;
    throw new StartError('STORE', why, { cause: error });
  }
}

/** The same file by another way is the same file. */
function resolved(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file; // it is not there yet
  }
}

function prepare(connection: DatabaseSync, file: string): void {
  const number = (pragma: string) =>
    Number(Object.values(connection.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const tables = Number(connection.prepare('SELECT count(*) AS count FROM sqlite_schema').get()?.count);
  if (tables > 0 && number('application_id') !== APPLICATION_ID)
    throw new StartError('STORE', `${file} is a database of something else than vmwright-cloud`);
  const version = number('user_version');
  if (version > MIGRATIONS.length) {
    throw new StartError(
      'STORE',
      `${file} was written by a newer vmwright-cloud (version ${version} of the data; this one knows ${MIGRATIONS.length})`,
    );
  }
  connection.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  for (const [at, migration] of MIGRATIONS.entries()) {
    if (at < version) continue;
    // The version goes with its tables: a kill in between would leave tables that the next start wants to make again.
    connection.exec(
      `BEGIN IMMEDIATE; ${migration}; PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${at + 1}; COMMIT`,
    );
  }
}
