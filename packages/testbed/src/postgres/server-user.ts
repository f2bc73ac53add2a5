import { run } from '../process/run.ts';

/** Numeric ids of a user. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Returns the user that runs PostgreSQL. If this process runs as root, it is the user `nobody`, because PostgreSQL
 * refuses to run as root. Otherwise, returns undefined, which means the current user.
 */
export async function serverUser(): Promise<ServerUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = await Promise.all([run('id', ['-u', 'nobody']), run('id', ['-g', 'nobody'])]);
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}
