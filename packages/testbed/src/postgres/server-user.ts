import { run } from '../process/run.ts';

/** A user by the numbers the system knows it by. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Whom PostgreSQL runs as. It refuses root, so root starts it as `nobody`; everyone else as themselves (undefined).
 */
export async function serverUser(): Promise<ServerUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = await Promise.all([run('id', ['-u', 'nobody']), run('id', ['-g', 'nobody'])]);
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}
