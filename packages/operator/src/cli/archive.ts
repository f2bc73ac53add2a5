import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/** A file of an archive. */
export interface ArchiveFile {
  /** Path with `/`, at most 100 bytes. */
  readonly path: string;
  readonly text: string;
}

const BLOCK = 512;

/** Returns a gzipped tar archive (ustar). @param mtimeMs time of all files, in milliseconds since 1970 */
export function tarGz(files: readonly ArchiveFile[], mtimeMs: number): Promise<Buffer> {
  const blocks = files.flatMap(({ path, text }) => {
    const content = Buffer.from(text);
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
    return [header(path, content.length, mtimeMs), content, padding];
  });
  return promisify(gzip)(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]));
}

/** Returns the ustar header of a file. */
function header(path: string, size: number, mtimeMs: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new Error(`the path ${path} is too long for a tar archive`);
  const octal = (value: number, digits: number) => `${Math.floor(value).toString(8).padStart(digits, '0')}\0`;
  const block = Buffer.alloc(BLOCK);
  const fields: readonly (readonly [offset: number, text: string])[] = [
    [0, path],
    [100, octal(0o644, 7)],
    [108, octal(0, 7)],
    [116, octal(0, 7)],
    [124, octal(size, 11)],
    [136, octal(mtimeMs / 1_000, 11)],
    [148, ' '.repeat(8)], // the checksum is computed as if its own field contained spaces
    [156, '0'],
    [257, 'ustar\x0000'],
  ];
  for (const [offset, text] of fields) block.write(text, offset, 'latin1');
  const checksum = block.reduce((sum, byte) => sum + byte, 0);
  block.write(`${checksum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}
