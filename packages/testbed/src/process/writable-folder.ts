import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { systemCode } from '@vmwright/core';
import { TestbedError } from '../errors.ts';

/** Purpose of a folder and the environment variable that selects another folder, for error messages. */
export interface FolderUse {
  /** Purpose of the folder, such as "the cache folder". */
  readonly purpose: string;
  readonly variable: string;
}

/** The file system operations that `requireWritableFolder` uses. Tests replace them. */
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

/**
 * Size of the file that is written to check that a folder is writable. It is too large to be stored inline in an inode,
 * so that a full disk rejects it.
 */
const PROBE_BYTES = 8192;

/**
 * Creates `folder` if it is missing, and writes a probe file to check that it is writable.
 *
 * Parents are created one at a time: on procfs, creating any folder fails with ENOENT, and Node's recursive `mkdir`
 * then never returns.
 *
 * @returns the topmost folder that was created, or undefined if all existed
 * @throws {TestbedError} `FOLDER_UNUSABLE`, with the remedy
 */
export async function requireWritableFolder(
  folder: string,
  use: FolderUse,
  files: ProbedFiles = FILES,
): Promise<string | undefined> {
  let created: string | undefined;
  for (const step of stepsTo(resolve(folder))) {
    const isNew = await makeFolder(step, files).catch((error) => fail(folder, use, step, error));
    if (isNew) created ??= step;
  }
  const probe = join(folder, `.probe-${process.pid}`);
  try {
    await files.write(probe, new Uint8Array(PROBE_BYTES));
  } catch (error) {
    fail(folder, use, folder, error);
  } finally {
    await files.remove(probe).catch(() => undefined); // a failed removal must not hide the error of the write
  }
  return created;
}

/** Returns the folder and its parents, topmost first, without the root. */
function stepsTo(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [] : [...stepsTo(parent), folder];
}

async function makeFolder(path: string, files: ProbedFiles): Promise<boolean> {
  // Checked first, because mkdir of an existing folder fails with EROFS on a read-only disk and with EEXIST for
  // `/proc`.
  if (await files.isFolder(path).catch(() => false)) return false;
  try {
    await files.mkdir(path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST' && (await files.isFolder(path).catch(() => false))) return false; // created concurrently by another run
    throw error;
  }
}

function fail(folder: string, { purpose, variable }: FolderUse, step: string, error: unknown): never {
  throw new TestbedError(
    'FOLDER_UNUSABLE',
    `${purpose} ${folder} cannot be used: ${reasonOf(step, error)}, or set ${variable} to another folder`,
    { cause: error },
  );
}

/** Returns the cause of the failure and the remedy. */
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
