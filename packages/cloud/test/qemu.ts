import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { defaultBinary } from '../src/server/qemu/settings.ts';

const run = promisify(execFile);

/** A real QEMU program for tests. */
export interface Qemu {
  readonly binary: string;
  /** Arguments that locate its firmware. */
  readonly args: readonly string[];
}

/**
 * Finds QEMU on the PATH, or unpacks it from Debian packages into the cache directory without installing it.
 * @returns QEMU; if both fail, `why` contains the reason
 */
export async function findQemu(): Promise<Qemu | { readonly why: string }> {
  const name = defaultBinary();
  const installed = (process.env.PATH ?? '')
    .split(delimiter)
    .map((dir) => join(dir, name))
    .find(existsSync);
  if (installed !== undefined) return { binary: installed, args: [] };
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'vmwright', 'qemu');
  const root = join(cache, name);
  if (!existsSync(join(root, 'run'))) {
    try {
      await unpack(name, root);
    } catch (error) {
      return { why: error instanceof Error ? error.message : String(error) };
    }
  }
  const shared = join(root, 'usr/share');
  return { binary: join(root, 'run'), args: ['-L', join(shared, 'seabios'), '-L', join(shared, 'qemu')] };
}

async function unpack(name: string, root: string): Promise<void> {
  if (name !== 'qemu-system-x86_64') throw new Error(`only qemu-system-x86_64 can be unpacked, not ${name}`);
  const work = `${root}.${process.pid}`;
  const archives = join(work, 'archives');
  mkdirSync(join(archives, 'partial'), { recursive: true });
  try {
    // The archive folder is set and apt's locking is disabled, so that apt writes only into `archives`.
    await run('apt-get', [
      'install',
      '--download-only',
      '--yes',
      '--no-install-recommends',
      ...['-o', `Dir::Cache::archives=${archives}`, '-o', 'Debug::NoLocking=true'],
      'qemu-system-x86',
    ]);
    for (const file of readdirSync(archives).filter((each) => each.endsWith('.deb')))
      await run('dpkg', ['-x', join(archives, file), work]);
    rmSync(archives, { recursive: true });
    const libraries = ['usr/lib', 'lib'].map((dir) => `$here/${dir}/x86_64-linux-gnu`).join(':');
    const script = `#!/bin/sh\nhere=$(dirname "$0")\nLD_LIBRARY_PATH=${libraries} exec "$here/usr/bin/${name}" "$@"\n`;
    writeFileSync(join(work, 'run'), script);
    chmodSync(join(work, 'run'), 0o755);
    await run(join(work, 'run'), ['--version'], { cwd: tmpdir() });
    renameSync(work, root); // atomic, because another process may unpack at the same time
  } catch (error) {
    rmSync(work, { recursive: true, force: true });
    if (!existsSync(join(root, 'run'))) throw error;
  }
}

/**
 * Returns a disk image with a boot sector that prints `booted` on the serial line and then loops, using all CPU time.
 */
export function bootSector(): Buffer {
  const text = Buffer.from('booted\r\n\0', 'latin1');
  const code = Buffer.from([
    ...[0x31, 0xc0, 0x8e, 0xd8], // xor ax, ax; mov ds, ax
    ...[0xbe, 0x14, 0x7c], // mov si, text (0x7c00 + 20)
    ...[0xba, 0xf8, 0x03], // mov dx, 0x3f8 (first serial port)
    ...[0xac, 0x84, 0xc0], // next: lodsb; test al, al
    ...[0x74, 0x03], // jz end
    0xee, // out dx, al
    ...[0xeb, 0xf8], // jmp next
    ...[0xeb, 0xfe], // end: jmp end
  ]);
  const disk = Buffer.alloc(1 << 20);
  code.copy(disk);
  text.copy(disk, code.length);
  disk.writeUInt16LE(0xaa55, 510);
  return disk;
}
