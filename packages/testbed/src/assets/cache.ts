import { createHash } from 'node:crypto';
import { access, constants, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RunSupervisor } from '../process/run-supervisor.ts';
import { requireSpace } from '../process/space.ts';
import { requireWritableFolder } from '../process/writable-folder.ts';
import type { Bundle, Platform } from './catalog.ts';
import { lock } from './lock.ts';

/** Folder of the pinned Go modules from which the programs are built. */
export const toolsFolder = fileURLToPath(new URL('../../../../tools/', import.meta.url));

/**
 * Cache of built or downloaded programs, with one folder per bundle. A bundle is written to a temporary folder, which
 * is then renamed under a lock. So the folder of a bundle is always complete.
 */
export class AssetCache {
  readonly root: string;
  readonly #platform: Platform;

  constructor(root: string, platform: Platform) {
    this.root = root;
    this.#platform = platform;
  }

  /** Returns the folder of a bundle. Its name contains a digest of the sources, so that a change leads to a rebuild. */
  async folder(bundle: Bundle): Promise<string> {
    const { os, arch } = this.#platform;
    const digest = await digestOf(join(toolsFolder, bundle.name), bundle.ldflags + (bundle.tags ?? ''));
    return join(this.root, `${bundle.name}-${bundle.version}-${os}-${arch}-${digest}`);
  }

  async has(bundle: Bundle): Promise<boolean> {
    const folder = await this.folder(bundle);
    return access(folder, constants.R_OK).then(
      () => true,
      () => false,
    );
  }

  /** Creates a bundle unless it exists. @param make writes the programs of the bundle into the given folder */
  async fill(bundle: Bundle, make: (folder: string) => Promise<void>, onWait: () => void): Promise<void> {
    const folder = await this.folder(bundle);
    await requireWritableFolder(this.root, { purpose: 'the cache folder', variable: 'XDG_CACHE_HOME' });
    await requireSpace(this.root, 'XDG_CACHE_HOME');
    using _ = await lock(join(this.root, `${bundle.name}.lock`), onWait);
    await this.#removePartial(bundle);
    if (await this.has(bundle)) return; // created by another run while this one waited for the lock
    const partial = join(this.root, `${bundle.name}.partial-${process.pid}`);
    RunSupervisor.shared.removeAtEnd(partial);
    await mkdir(partial);
    try {
      await make(partial);
      await rename(partial, folder);
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
  }

  /**
   * Removes partial folders of runs that were killed together with the supervisor process, which would have removed the
   * folders. Safe, because the caller holds the lock.
   */
  async #removePartial(bundle: Bundle): Promise<void> {
    for (const name of await readdir(this.root)) {
      if (name.startsWith(`${bundle.name}.partial-`))
        await rm(join(this.root, name), { recursive: true, force: true });
    }
  }
}

export function defaultCacheRoot(env: NodeJS.ProcessEnv = process.env): string {
  const system =
    process.platform === 'darwin' ? join(homedir(), 'Library', 'Caches') : join(homedir(), '.cache');
  return join(env.XDG_CACHE_HOME || system, 'vmwright', 'assets');
}

async function digestOf(folder: string, flags: string): Promise<string> {
  const hash = createHash('sha256').update(flags);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  for (const file of files.sort()) hash.update(file.slice(folder.length)).update(await readFile(file));
  return hash.digest('hex').slice(0, 12);
}
