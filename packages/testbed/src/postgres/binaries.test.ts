import { existsSync } from 'node:fs';
import { chmod, cp, lstat, readdir, readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RunSupervisor } from '../process/run-supervisor.ts';
import { installedNative, usableBinaries } from './binaries.ts';
import { startPostgres } from './postgres.ts';
import { serverUser } from './server-user.ts';

describe("PostgreSQL's programs", { timeout: 60_000 }, () => {
  let home: string;
  let native: string;
  let dir: string;

  beforeEach(async () => {
    home = await RunSupervisor.shared.folder('home');
    native = join(home, 'native');
    dir = await RunSupervisor.shared.folder('open');
    for (const folder of [home, dir]) await chmod(folder, 0o755);
  });
  afterEach(async () => {
    for (const folder of [home, dir]) await rm(folder, { recursive: true });
  });

  function install(): Promise<void> {
    return cp(installedNative(), native, { recursive: true, verbatimSymlinks: true });
  }

  test('the programs run from a copy when their folder is not accessible to the server user', async () => {
    await install();
    await chmod(home, 0o700);
    await using postgres = await startPostgres({ native });
    expect(postgres.part.running).toBe(true);
    // Without root, the server runs as the current user, who has access, so no copy is made.
    expect(existsSync(join(postgres.part.dir, 'native'))).toBe((await serverUser()) !== undefined);
  });

  test('if symbolic links are missing, the links are created and the programs run in place', async () => {
    await install();
    const links = await linksIn(join(native, 'lib'));
    expect(links.size).toBeGreaterThan(0);
    for (const name of links.keys()) await rm(join(native, 'lib', name));
    const { initdb, postgres } = await usableBinaries({ native, user: await serverUser(), dir });
    expect([initdb, postgres]).toEqual([join(native, 'bin', 'initdb'), join(native, 'bin', 'postgres')]);
    expect(await linksIn(join(native, 'lib'))).toEqual(links);
  });

  test('the programs run from a copy if symbolic links are missing and the folder is read-only', async () => {
    await install();
    const lib = join(native, 'lib');
    const links = await linksIn(lib);
    for (const name of links.keys()) await rm(join(lib, name));
    await chmod(lib, 0o555);
    const user = await serverUser();
    const { postgres } = await usableBinaries({ native, user, dir });
    // `user` is set only if this test runs as root. The permissions of the folder do not apply to root, so the links
    // are created there, and no copy is made.
    const used = user === undefined ? join(dir, 'native') : native;
    expect(postgres).toBe(join(used, 'bin', 'postgres'));
    expect(await linksIn(join(used, 'lib'))).toEqual(links);
    await chmod(lib, 0o755);
  });

  test('the programs run from a copy when they are not executable', async () => {
    await install();
    for (const name of await readdir(join(native, 'bin'))) await chmod(join(native, 'bin', name), 0o644);
    const { postgres } = await usableBinaries({ native, user: await serverUser(), dir });
    expect(postgres).toBe(join(dir, 'native', 'bin', 'postgres'));
  });

  test('usableBinaries fails with ASSET_UNAVAILABLE if the programs are missing', async () => {
    await expect(usableBinaries({ native, user: await serverUser(), dir })).rejects.toMatchObject({
      code: 'ASSET_UNAVAILABLE',
      message: expect.stringMatching(/^PostgreSQL does not run.*no such file/),
    });
  });
});

async function linksIn(folder: string): Promise<Map<string, string>> {
  const links = new Map<string, string>();
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if ((await lstat(path)).isSymbolicLink()) links.set(name, await readlink(path));
  }
  return links;
}
