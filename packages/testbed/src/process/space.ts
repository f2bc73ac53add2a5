import { statfs } from 'node:fs/promises';
import { systemCode } from '@vmwright/core';
import { TestbedError } from '../errors.ts';

/** etcd preallocates 64 MB twice, PostgreSQL takes 40, programs 100 each, and logs grow. */
const NEEDED_MB = 512;

/**
 * Rejects a disk that is almost full: etcd, PostgreSQL and compilers fail there with messages that do not name the cause.
 * `VMWRIGHT_MIN_FREE_MB` sets another limit.
 */
export async function requireSpace(
  folder: string,
  variable: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  const needed = Number(env.VMWRIGHT_MIN_FREE_MB || NEEDED_MB);
  const { bavail, bsize } = await statfs(folder).catch((error) => {
    throw new TestbedError(
      'FOLDER_UNUSABLE',
      `${folder} cannot be used (${systemCode(error) ?? error}); create it, or set ${variable} to another folder`,
      { cause: error },
    );
  });
  const free = Math.floor((bavail * bsize) / 1e6);
  if (free >= needed) return;
  throw new TestbedError(
    'DISK_FULL',
    `${folder} has ${free} MB left, and the testbed needs ${needed} MB; free some, or set ${variable} to a folder elsewhere`,
  );
}
