import { statfs } from 'node:fs/promises';
import { TestbedError } from '../errors.ts';

const NEEDED_MB = 512; // etcd preallocates 64 MB twice, PostgreSQL takes 40, logs grow

/** A full disk ends etcd and PostgreSQL in ways that nobody understands; so it is told beforehand. */
export async function requireSpace(folder: string, variable: string, needed = NEEDED_MB): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const free = Math.floor((bavail * bsize) / 1e6);
  if (free >= needed) return;
  throw new TestbedError(
    'DISK_FULL',
    `${folder} has ${free} MB left, and the testbed needs ${needed} MB; free some, or set ${variable} to a folder elsewhere`,
  );
}
