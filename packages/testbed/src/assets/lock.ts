import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '@vmwright/core';

/**
 * Holds a lock file until disposed. SQLite's own file lock does the work: the system lets go of it when its holder
 * dies, so there is no stale lock to find, which every scheme of pid files must do and gets wrong in some race.
 */
export async function lock(file: string, onWait: () => void): Promise<Disposable> {
  let told = false;
  for (;;) {
    const held = tryLock(file);
    if (held !== undefined) return held;
    if (!told) onWait();
    told = true;
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
