/**
 * `make push IMAGE=<reference>`: pushes dist/vmwright-image.tar to a registry and prints its reference with the digest.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runPinned } from './pinned-program.ts';

const archive = fileURLToPath(new URL('../../dist/vmwright-image.tar', import.meta.url));
const { IMAGE = '' } = process.env;
if (IMAGE === '' || !existsSync(archive)) {
  console.error('run `make image` first, and set IMAGE, such as IMAGE=registry.example/vmwright:1.2.3');
  process.exit(1);
}
const folder = mkdtempSync(join(tmpdir(), 'vmwright-image-'));
try {
  execFileSync('tar', ['-xf', archive, '-C', folder]);
  process.stdout.write(runPinned('crane', 'push', folder, IMAGE).stdout);
} finally {
  rmSync(folder, { recursive: true });
}
