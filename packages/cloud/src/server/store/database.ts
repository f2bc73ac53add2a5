import { realpathSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from '@vmwright/core';
import { StartError } from '../errors.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';

/**
 * SQLite database of the cloud, locked for one process.
 *
 * Guarantees: when `transaction` returns, its changes are on disk (WAL, `synchronous` FULL). When it throws, nothing
 * has changed.
 *
 * The lock is a second SQLite file next to the database, so that other processes, such as a backup, can still read the
 * data. The operating system releases the lock when the process ends, even after a kill.
 */
export class Database implements Disposable {
  readonly #lock: DatabaseSync;
  readonly connection: DatabaseSync;

  /** @throws StartError if the file is locked, cannot be opened, or is not a database of vmwright-cloud */
  constructor(file: string) {
    this.#lock = acquireLock(file);
    try {
      this.connection = new DatabaseSync(file);
      migrate(this.connection, file);
    } catch (error) {
      this.#lock.close();
      if (error instanceof StartError) throw error;
      throw new StartError('STORE', `cannot use ${file}: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Runs `work` in a transaction. If `work` throws, the transaction is rolled back. */
  transaction<T>(work: () => T): T {
    this.connection.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.connection.exec('COMMIT');
      return result;
    } catch (error) {
      // SQLite may have rolled back already, for example on a full disk.
      if (this.connection.isTransaction) this.connection.exec('ROLLBACK');
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.connection.close();
    this.#lock.close();
  }
}

function acquireLock(file: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(`${resolveLinks(file)}.lock`);
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock?.close();
    const inUse = messageOf(error).includes('locked');
    const why = inUse
      ? `${file} is in use by another vmwright-cloud process; use another --data file`
      : `cannot use ${file}: ${messageOf(error)}; its directory must exist and be writable`;
    throw new StartError('STORE', why, { cause: error });
  }
}

/** Resolves symbolic links, so that every path to a file uses the same lock. */
function resolveLinks(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file; // does not exist yet
  }
}

/** Checks that the database belongs to vmwright-cloud, and applies the missing migrations. */
function migrate(connection: DatabaseSync, file: string): void {
  const number = (pragma: string) =>
    Number(Object.values(connection.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const tables = Number(connection.prepare('SELECT count(*) AS count FROM sqlite_schema').get()?.count);
  if (tables > 0 && number('application_id') !== APPLICATION_ID)
    throw new StartError('STORE', `${file} is not a vmwright-cloud database`);
  const version = number('user_version');
  if (version > MIGRATIONS.length) {
    throw new StartError(
      'STORE',
      `${file} was written by a newer vmwright-cloud (schema version ${version}; this version supports ${MIGRATIONS.length})`,
    );
  }
  connection.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  for (const [at, migration] of MIGRATIONS.entries()) {
    if (at < version) continue;
    // The version is set in the same transaction as the migration. Otherwise, after a crash between the two, the next
    // start would apply the migration again.
    connection.exec(
      `BEGIN IMMEDIATE; ${migration}; PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${at + 1}; COMMIT`,
    );
  }
}
