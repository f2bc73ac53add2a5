import { readFile, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { systemCode } from '@vmwright/core';

/** The list that PostgreSQL's npm package carries, because an npm package cannot hold symbolic links themselves. */
const LIST = 'pg-symlinks.json';

interface Link {
  /** What it points to, and where it is; both from the package's folder, one above `native`. */
  readonly source: string;
  readonly target: string;
}

/**
 * Makes the symbolic links of a `native` folder that are missing. The package's install script does so too, but
 * install scripts are often switched off; without its links no program there finds its libraries.
 *
 * A folder that cannot be written is left as it is.
 */
export async function hydrateSymlinks(native: string): Promise<void> {
  for (const { source, target } of await linksOf(native)) {
    const path = join(native, relative('native', target));
    try {
      await symlink(relative(dirname(target), source), path);
    } catch (error) {
      const code = systemCode(error);
      if (code === 'EEXIST') continue; // the install script, or another run at this very moment
      if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return;
      throw error;
    }
  }
}

async function linksOf(native: string): Promise<readonly Link[]> {
  let text: string;
  try {
    text = await readFile(join(native, LIST), 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
  const links: unknown = JSON.parse(text);
  return Array.isArray(links) ? links.filter(isLink) : [];
}

function isLink(value: unknown): value is Link {
  if (typeof value !== 'object' || value === null || !('source' in value) || !('target' in value))
    return false;
  return typeof value.source === 'string' && typeof value.target === 'string';
}
