import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of the manifests that `make generate` writes. */
export const manifestsFolder = fileURLToPath(new URL('../../manifests/', import.meta.url));

export function manifestPath(name: string): string {
  return join(manifestsFolder, `${name}.yaml`);
}

export function readManifest(name: string): Promise<string> {
  return readFile(manifestPath(name), 'utf8');
}
