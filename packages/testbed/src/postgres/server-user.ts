import { run } from '../process/run.ts';

/** Numeric ids of a user. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/** Returns the user to run PostgreSQL as: the user `nobody` for root, because PostgreSQL refuses root; otherwise undefined. */
export async function serverUser(): Promise<ServerUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = await Promise.all([run('id', ['-u', 'nobody']), run('id', ['-g', 'nobody'])]);
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}
