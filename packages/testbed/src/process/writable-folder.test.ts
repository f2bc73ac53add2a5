import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from './run-supervisor.ts';
import { type ProbedFiles, requireWritableFolder } from './writable-folder.ts';

const USE = { purpose: 'the cache folder', variable: 'XDG_CACHE_HOME' };

async function folder(): Promise<string> {
  const path = await temporaryFolder('writable');
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Fake disk with the given folders, on which the given operations fail. */
function disk(fails: Partial<Record<keyof ProbedFiles, string>>, ...existing: readonly string[]) {
  const folders = new Set(existing);
  const failIfConfigured = (operation: keyof ProbedFiles) => {
    if (fails[operation] !== undefined)
      throw Object.assign(new Error(fails[operation]), { code: fails[operation] });
  };
  const files: ProbedFiles = {
    isFolder: async (path) => folders.has(path),
    mkdir: async (path) => {
      failIfConfigured('mkdir');
      if (dirname(path) !== '/' && !folders.has(dirname(path)))
        throw new Error(`${path}: its parent does not exist`);
      folders.add(path);
    },
    write: async () => failIfConfigured('write'),
    remove: async () => undefined,
  };
  return { files, folders };
}

test('requireWritableFolder creates missing folders one by one, and returns the topmost folder that it created', async () => {
  const root = await folder();
  expect(await requireWritableFolder(join(root, 'a', 'b', 'c'), USE)).toBe(join(root, 'a'));
  expect(await requireWritableFolder(join(root, 'a', 'b', 'c'), USE)).toBeUndefined();
  expect(readdirSync(join(root, 'a', 'b', 'c'))).toEqual([]);
});

test('a folder on procfs is rejected without endless retries', async () => {
  // procfs returns ENOENT for every new name; Node's recursive mkdir then retries from the parent in an endless loop.
  const { files } = disk({ mkdir: 'ENOENT' }, '/proc');
  await expect(requireWritableFolder('/proc/nope/vmwright', USE, files)).rejects.toThrow(
    'the cache folder /proc/nope/vmwright cannot be used: /proc/nope cannot be created or written (ENOENT); create it, or set XDG_CACHE_HOME to another folder',
  );
});

test('a path that leads through a file is rejected, and the error contains the path of the file', async () => {
  const root = await folder();
  writeFileSync(join(root, 'file'), '');
  await expect(requireWritableFolder(join(root, 'file', 'x', 'y'), USE)).rejects.toThrow(
    `${join(root, 'file')} is a file (EEXIST); remove it, or set XDG_CACHE_HOME to another folder`,
  );
});

describe('an existing folder that', () => {
  test.each([
    ['is on a read-only disk', 'EROFS', '/cache cannot be written (EROFS); make it writable'],
    ['belongs to another user', 'EACCES', '/cache cannot be written (EACCES); make it writable'],
    ['is on a full disk', 'ENOSPC', 'its disk is full (ENOSPC); free some space'],
    ['exceeds its quota', 'EDQUOT', 'its disk is full (EDQUOT); free some space'],
  ])('%s is rejected, and the error names the remedy', async (_, code, sentence) => {
    const { files } = disk({ write: code }, '/cache');
    await expect(requireWritableFolder('/cache', USE, files)).rejects.toThrow(
      `the cache folder /cache cannot be used: ${sentence}, or set XDG_CACHE_HOME to another folder`,
    );
  });
});

test('a folder that another run creates concurrently is accepted', async () => {
  const { files, folders } = disk({});
  const racing: ProbedFiles = {
    ...files,
    mkdir: async (path) => {
      folders.add(path);
      throw Object.assign(new Error('EEXIST'), { code: 'EEXIST' });
    },
  };
  expect(await requireWritableFolder('/a/b', USE, racing)).toBeUndefined();
});

test('requireWritableFolder removes the file that it created to test write access', async () => {
  const root = await folder();
  await requireWritableFolder(root, USE);
  expect(existsSync(join(root, `.probe-${process.pid}`))).toBe(false);
});
