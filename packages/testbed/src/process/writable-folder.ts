import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { systemCode } from '@vmwright/core';
import { TestbedError } from '../errors.ts';

/** What a folder is for, and which variable sets another one. */
export interface FolderUse {
  /** As in "the cache folder". */
  readonly purpose: string;
  readonly variable: string;
}

/** The file system, as far as the probe uses it. */
export interface ProbedFiles {
  readonly mkdir: (path: string) => Promise<unknown>;
  readonly isFolder: (path: string) => Promise<boolean>;
  readonly write: (path: string, content: Uint8Array) => Promise<void>;
  readonly remove: (path: string) => Promise<void>;
}

const FILES: ProbedFiles = {
  mkdir: (path) => mkdir(path),
  isFolder: async (path) => (await stat(path)).isDirectory(),
  write: (path, content) => writeFile(path, content),
  remove: (path) => rm(path, { force: true }),
};

/** More than a file system stores inside an inode, so that a full disk rejects it. */
const PROBE_BYTES = 8192;

/**
 * Creates `folder` where it is missing, and proves with a probe file that it can be written.
 *
 * Creates one step at a time: Node's recursive `mkdir` never ends on procfs, which answers ENOENT for every new name.
 *
 * @returns the topmost folder that was created, if one was
 * @throws {TestbedError} `FOLDER_UNUSABLE`, with the remedy
 */
export async function requireWritableFolder(
  folder: string,
  use: FolderUse,
  files: ProbedFiles = FILES,
): Promise<string | undefined> {
  let created: string | undefined;
  for (const step of stepsTo(resolve(folder))) {
    const made = await makeFolder(step, files).catch((error) => reject(folder, use, step, error));
    if (made) created ??= step;
  }
  const probe = join(folder, `.probe-${process.pid}`);
  try {
    await files.write(probe, new Uint8Array(PROBE_BYTES));
  } catch (error) {
    reject(folder, use, folder, error);
  } finally {
    await files.remove(probe).catch(() => undefined); // the failed write says more
  }
  return created;
}

/** The folder and those above it, topmost first, without the root. */
function stepsTo(folder: string): readonly string[] {
  const above = dirname(folder);
  return above === folder ? [] : [...stepsTo(above), folder];
}

async function makeFolder(path: string, files: ProbedFiles): Promise<boolean> {
  // Asked first: systems answer mkdir of an existing folder on a read-only disk with EROFS, and of `/proc` with EEXIST.
  if (await files.isFolder(path).catch(() => false)) return false;
  try {
    await files.mkdir(path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST' && (await files.isFolder(path).catch(() => false))) return false; // another run was faster
    throw error;
  }
}

function reject(folder: string, { purpose, variable }: FolderUse, step: string, error: unknown): never {
  throw new TestbedError(
    'FOLDER_UNUSABLE',
    `${purpose} ${folder} cannot be used: ${reasonOf(step, error)}, or set ${variable} to another folder`,
    { cause: error },
  );
}

/** What is wrong, and the remedy. */
function reasonOf(step: string, error: unknown): string {
  const code = systemCode(error);
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `its disk is full (${code}); free some space`;
    case 'EEXIST':
    case 'ENOTDIR':
      return `${step} is a file (${code}); remove it`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `${step} cannot be written (${code}); make it writable`;
    default:
      return `${step} cannot be created or written (${code ?? error}); create it`;
  }
}
