/** `make image`: writes the operator's image to `dist/vmwright-image.tar`, without a container engine. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { baseImage, DISTROLESS } from './base.ts';
import { writeImage } from './image.ts';
import { Layout } from './layout.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { BASE = '', TAG = '', OUTPUT = '' } = process.env;
const output = OUTPUT || join(root, 'dist/vmwright-image.tar');
const folder = mkdtempSync(join(tmpdir(), 'vmwright-image-'));
try {
  const target = new Layout(join(folder, 'image'));
  const base = baseImage(BASE || DISTROLESS, join(folder, 'base'));
  writeImage(join(root, 'packages/operator/dist'), base, target, TAG || 'vmwright:latest');
  mkdirSync(dirname(output), { recursive: true });
  execFileSync('tar', ['-cf', output, '-C', target.folder, 'oci-layout', 'index.json', 'blobs']);
  console.log(output);
} finally {
  rmSync(folder, { recursive: true });
}
