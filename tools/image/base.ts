import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Layout } from './layout.ts';

/** Base image for users with access to its registry: Node 24, CA certificates, glibc; no shell. */
export const DISTROLESS = 'gcr.io/distroless/nodejs24-debian13:nonroot';

/**
 * Returns the layout of the base image.
 * @param base a folder in the OCI image layout, or the reference of an image, which crane pulls for all platforms
 * @param folder folder for a pulled image
 */
export function baseLayout(base: string, folder: string): Layout {
  if (existsSync(join(base, 'index.json'))) return new Layout(base);
  crane('pull', '--format=oci', base, folder);
  return new Layout(folder);
}

/** Runs crane, of the version that tools/crane pins. Paths must be absolute. */
export function crane(...args: readonly string[]): void {
  const command = ['run', 'github.com/google/go-containerregistry/cmd/crane', ...args];
  execFileSync('go', command, { cwd: fileURLToPath(new URL('../crane', import.meta.url)), stdio: 'inherit' });
}
