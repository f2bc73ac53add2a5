import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../process/run.ts';

const MAGIC = '!<arch>\n';
const HEADER_BYTES = 60;

/** Extracts the files of a Debian package into a folder. Needs `tar` with xz support, but neither dpkg nor root. */
export async function extractDebianPackage(archive: Buffer, folder: string): Promise<void> {
  const data = [...members(archive)].find(({ name }) => name.startsWith('data.tar'));
  if (data === undefined) throw new Error('the file is not a Debian package: it has no data.tar');
  const file = join(folder, data.name);
  await writeFile(file, data.content);
  await run('tar', ['-xf', file, '-C', folder]);
  await rm(file);
}

/** Yields the files of an `ar` archive. */
function* members(archive: Buffer): Generator<{ readonly name: string; readonly content: Buffer }> {
  if (archive.toString('latin1', 0, MAGIC.length) !== MAGIC) throw new Error('the file is not an ar archive');
  for (let at = MAGIC.length; at + HEADER_BYTES <= archive.length; ) {
    const header = archive.toString('latin1', at, at + HEADER_BYTES);
    const name = header.slice(0, 16).trim().replace(/\/$/, '');
    const size = Number(header.slice(48, 58));
    const start = at + HEADER_BYTES;
    yield { name, content: archive.subarray(start, start + size) };
    at = start + size + (size % 2); // members are aligned to two bytes
  }
}
