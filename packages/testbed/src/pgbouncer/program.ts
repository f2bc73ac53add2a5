import { createHash } from 'node:crypto';
import { access, cp, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { defaultCacheRoot } from '../assets/cache.ts';
import { Web } from '../assets/release.ts';
import { TestbedError } from '../errors.ts';
import { requireWritableFolder } from '../process/writable-folder.ts';
import { extractDebianPackage } from './debian-package.ts';

/**
 * Version of PgBouncer. Newer versions track prepared statements in transaction mode. This version does not, so the
 * tests show that the client does not depend on this feature.
 */
const VERSION = '1.18.0-1+deb12u1';
const DEBIAN = 'http://deb.debian.org/debian/pool/main';

interface Package {
  readonly url: string;
  readonly sha256: string;
  /** Path of the needed file in the package. */
  readonly member: string;
  readonly name: string;
}

/**
 * Debian packages with PgBouncer and one of its libraries. PgBouncer's project and the package registries publish no
 * binaries. The other libraries (libevent, OpenSSL) come from the system.
 */
const PACKAGES: Readonly<Record<string, readonly Package[]>> = {
  x64: packages('amd64', 'x86_64', [
    'b8468c31f94596da0967b1a27980a0a036268eb8e53d3e647651bd7b82b6f65e',
    '087fd5c2ac883202e1786ab45617cdab7f77bc7f060d58cca177ddf6b6c3fa73',
  ]),
  arm64: packages('arm64', 'aarch64', [
    '7d76005d6eca8a4930014629873e3968c7919d4ef7264bbf5e270bee004248eb',
    'ea0a1f3c9eae54bae44e7c7b31c5a0ac44d0b949c006653d4d806893f8d94010',
  ]),
};

function packages(arch: string, triplet: string, [program, library]: readonly [string, string]): Package[] {
  return [
    {
      url: `${DEBIAN}/p/pgbouncer/pgbouncer_${encodeURIComponent(VERSION)}_${arch}.deb`,
      sha256: program,
      member: 'usr/sbin/pgbouncer',
      name: 'pgbouncer',
    },
    {
      url: `${DEBIAN}/c/c-ares/libc-ares2_1.18.1-3_${arch}.deb`,
      sha256: library,
      member: `usr/lib/${triplet}-linux-gnu/libcares.so.2.5.1`,
      name: 'libcares.so.2',
    },
  ];
}

/**
 * Returns a folder with PgBouncer and a library that most systems lack. Downloads both once, about 300 KB.
 * @throws TestbedError `ASSET_UNAVAILABLE` if Debian's server is not reachable, or has no package for this platform
 */
export async function pgBouncerFolder(): Promise<string> {
  const root = defaultCacheRoot();
  const folder = join(root, `pgbouncer-${VERSION}-${process.platform}-${process.arch}`);
  if (await exists(folder)) return folder;
  const wanted = process.platform === 'linux' ? PACKAGES[process.arch] : undefined;
  if (wanted === undefined)
    throw new TestbedError(
      'ASSET_UNAVAILABLE',
      `Debian has no PgBouncer for ${process.platform}-${process.arch}`,
    );
  await requireWritableFolder(root, { purpose: 'the cache folder', variable: 'XDG_CACHE_HOME' });
  const partial = await mkdtemp(join(root, 'pgbouncer.partial-'));
  try {
    for (const each of wanted) await downloadInto(partial, each);
    await rename(partial, folder).catch(async (error: unknown) => {
      if (!(await exists(folder))) throw error; // another run has created the folder in the meantime
    });
    return folder;
  } catch (error) {
    throw new TestbedError('ASSET_UNAVAILABLE', `PgBouncer is not available: ${messageOf(error)}`, {
      cause: error,
    });
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

async function downloadInto(folder: string, { url, sha256, member, name }: Package): Promise<void> {
  const web = new Web(process.env.VMWRIGHT_MIRROR);
  const file = join(folder, `${name}.deb`);
  try {
    await web.save(url, file, () => undefined);
  } finally {
    await web.close();
  }
  const archive = await readFile(file);
  const actual = createHash('sha256').update(archive).digest('hex');
  if (actual !== sha256) throw new Error(`${url} has SHA-256 ${actual} instead of ${sha256}`);
  await extractDebianPackage(archive, folder);
  await cp(join(folder, member), join(folder, name));
  await rm(file);
  await rm(join(folder, 'usr'), { recursive: true });
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
