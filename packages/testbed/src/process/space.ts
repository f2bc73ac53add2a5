import { statfs } from 'node:fs/promises';
import { systemCode } from '@vmwright/core';
import { TestbedError } from '../errors.ts';

/** Required free space: etcd preallocates 2 × 64 MB, PostgreSQL needs 40 MB, each program 100 MB, and logs grow. */
const NEEDED_MB = 512;

/**
 * Throws `DISK_FULL` if the disk of `folder` has too little free space. On a full disk, etcd, PostgreSQL and compilers
 * fail with messages that do not name the cause. `VMWRIGHT_MIN_FREE_MB` overrides the limit.
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
    `${folder} has ${free} MB free, but the testbed needs ${needed} MB; free some space, or set ${variable} to a folder on another disk`,
  );
}
