import { chmod, chown } from 'node:fs/promises';
import type { ServerUser } from './server-user.ts';

/** Sets the mode of a file or folder, and makes the server user its owner. */
export async function giveTo(user: ServerUser | undefined, path: string, mode: number): Promise<void> {
  await chmod(path, mode);
  if (user !== undefined) await chown(path, user.uid, user.gid);
}
