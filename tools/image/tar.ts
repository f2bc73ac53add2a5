const BLOCK = 512;
const encoder = new TextEncoder();

/** A file, folder or symbolic link of an archive. The path of a folder ends with a slash. */
export interface Entry {
  readonly path: string;
  readonly mode: number;
  readonly content?: Uint8Array;
  /** Target of a symbolic link. */
  readonly link?: string;
}

/** Returns a tar archive (POSIX ustar). Owner and times are 0, so that equal entries give equal archives. */
export function tar(entries: readonly Entry[]): Uint8Array {
  const blocks = entries.flatMap(({ path, mode, content = new Uint8Array(), link }) => [
    header(path, mode, content.length, link),
    content,
    new Uint8Array(-content.length & (BLOCK - 1)),
  ]);
  return Buffer.concat([...blocks, new Uint8Array(2 * BLOCK)]);
}

function header(path: string, mode: number, size: number, link = ''): Uint8Array {
  const block = new Uint8Array(BLOCK);
  const write = (offset: number, text: string) => block.set(encoder.encode(text), offset);
  for (const each of [path, link])
    if (encoder.encode(each).length > 100) throw new Error(`the path ${each} has more than 100 bytes`);
  write(0, path);
  write(100, octal(mode, 7));
  write(108, octal(0, 7)); // user
  write(116, octal(0, 7)); // group
  write(124, octal(size, 11));
  write(136, octal(0, 11)); // time
  write(148, ' '.repeat(8)); // the checksum is computed with spaces in its own field
  write(156, link !== '' ? '2' : path.endsWith('/') ? '5' : '0');
  write(157, link);
  write(257, 'ustar\u000000');
  write(
    148,
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\u0000 `,
  );
  return block;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0');
}
