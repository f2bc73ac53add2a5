import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '@vmwright/core';

/**
 * Acquires a lock file and holds it until disposed. Uses SQLite's file lock, which the operating system releases when
 * the holder dies. Pid files would require detecting stale locks, which is prone to races.
 *
 * @param onWait called once if the lock is held by another process
 */
export async function lock(file: string, onWait: () => void): Promise<Disposable> {
  let notified = false;
  for (;;) {
    const held = tryLock(file);
    if (held !== undefined) return held;
    if (!notified) onWait();
    notified = true;
    await sleep(250);
  }
}

function tryLock(file: string): Disposable | undefined {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
    return { [Symbol.dispose]: () => database.close() };
  } catch (error) {
    database.close();
    if (/locked|busy/i.test(messageOf(error))) return undefined;
    throw error;
  }
}
