import { statfs } from 'node:fs/promises';
import { TestbedError } from '../errors.ts';

/** etcd preallocates 64 MB twice, PostgreSQL takes 40, programs 100 each, and logs grow. */
const NEEDED_MB = 512;

/**
 * Refuses with a sentence when a disk is about to be full: etcd, PostgreSQL and compilers end in ways then that nobody
 * understands. `VMWRIGHT_MIN_FREE_MB` sets another limit.
 */
export async function requireSpace(
  folder: string,
  variable: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  const needed = Number(env.VMWRIGHT_MIN_FREE_MB || NEEDED_MB);
  const { bavail, bsize } = await statfs(folder);
  const free = Math.floor((bavail * bsize) / 1e6);
  if (free >= needed) return;
  throw new TestbedError(
    'DISK_FULL',
    `${folder} has ${free} MB left, and the testbed needs ${needed} MB; free some, or set ${variable} to a folder elsewhere`,
  );
}
