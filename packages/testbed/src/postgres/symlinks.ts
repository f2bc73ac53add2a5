import { readFile, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { systemCode } from '@vmwright/core';

/**
 * File in PostgreSQL's npm package that lists the symbolic links that its programs need. npm packages cannot contain
 * symbolic links.
 */
const LIST = 'pg-symlinks.json';

interface Link {
  /** Path that the link points to, relative to the package's folder (the parent of `native`). */
  readonly source: string;
  /** Location of the link, relative to the package's folder. */
  readonly target: string;
}

/**
 * Creates the missing symbolic links of a `native` folder. Without the links, the programs in the folder do not find
 * their libraries. The package's install script also creates the links, but install scripts are often disabled. Does
 * nothing if the folder is not writable.
 */
export async function hydrateSymlinks(native: string): Promise<void> {
  for (const { source, target } of await linksOf(native)) {
    const path = join(native, relative('native', target));
    try {
      await symlink(relative(dirname(target), source), path);
    } catch (error) {
      const code = systemCode(error);
      if (code === 'EEXIST') continue; // created by the install script or by a concurrent run
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
