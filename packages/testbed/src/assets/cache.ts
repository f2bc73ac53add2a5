import { createHash } from 'node:crypto';
import { access, constants, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Keeper } from '../process/keeper.ts';
import { requireSpace } from '../process/space.ts';
import { requireWritableFolder } from '../process/writable-folder.ts';
import type { Bundle, Platform } from './catalog.ts';
import { lock } from './lock.ts';

/** The pinned Go modules from which the programs are built. */
export const toolsFolder = fileURLToPath(new URL('../../../../tools/', import.meta.url));

/**
 * Finished programs, a folder a bundle. A bundle is made in a folder beside its own and moved there in one step, under
 * a lock: who finds the folder finds it whole.
 */
export class AssetCache {
  readonly root: string;
  readonly #platform: Platform;

  constructor(root: string, platform: Platform) {
    this.root = root;
    this.#platform = platform;
  }

  /** Where a bundle is, or will be. The name holds a digest of what it is made from, so a change there makes it anew. */
  async folder(bundle: Bundle): Promise<string> {
    const { os, arch } = this.#platform;
    const digest = await digestOf(join(toolsFolder, bundle.name), bundle.ldflags);
    return join(this.root, `${bundle.name}-${bundle.version}-${os}-${arch}-${digest}`);
  }

  async has(bundle: Bundle): Promise<boolean> {
    const folder = await this.folder(bundle);
    return access(folder, constants.R_OK).then(
      () => true,
      () => false,
    );
  }

  /** Makes a bundle unless it is there by now. `make` fills the folder it is given. */
  async fill(bundle: Bundle, make: (folder: string) => Promise<void>, onWait: () => void): Promise<void> {
    const folder = await this.folder(bundle);
    await requireWritableFolder(this.root, { purpose: 'the cache folder', variable: 'XDG_CACHE_HOME' });
    await requireSpace(this.root, 'XDG_CACHE_HOME');
    using _ = await lock(join(this.root, `${bundle.name}.lock`), onWait);
    await this.#removePartial(bundle);
    if (await this.has(bundle)) return; // another run made it while this one waited
    const partial = join(this.root, `${bundle.name}.partial-${process.pid}`);
    Keeper.shared.removeAtEnd(partial);
    await mkdir(partial);
    try {
      await make(partial);
      await rename(partial, folder);
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
  }

  /** What a run left behind that was killed together with its keeper; the lock says that none is at it now. */
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
