import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundle } from './bundle.ts';
import { compile } from './compile.ts';
import { publishedManifest, type SourceManifest } from './manifest.ts';
import { notices } from './notices.ts';
import { PACKAGES, type PackageName } from './package-names.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Writes each package in its published form to `<folder>/<package>/dist`: compiled library in `lib`, bundled programs
 * in `bin`, package.json, README and licence.
 */
export async function build(folder: string): Promise<void> {
  const dist = (name: string) => join(folder, name, 'dist');
  for (const name of PACKAGES) rmSync(dist(name), { recursive: true, force: true });
  compile(PACKAGES, (name) => join(dist(name), 'lib'));
  for (const name of PACKAGES) await writePackage(name, dist(name));
}

/** Writes a package in its published form to a folder, except for the compiled library. */
export async function writePackage(name: PackageName, folder: string): Promise<void> {
  const manifest = sourceManifest(name);
  const versions = new Map(PACKAGES.map(sourceManifest).map((each) => [each.name, each.version]));
  mkdirSync(folder, { recursive: true });
  await bundlePrograms(name, manifest, join(folder, 'bin'));
  const published = JSON.stringify(publishedManifest(manifest, versions, process.env.REPOSITORY), null, 2);
  writeFileSync(join(folder, 'package.json'), `${published}\n`);
  copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  copyFileSync(join(ROOT, 'packages', name, 'README.md'), join(folder, 'README.md'));
}

/** Bundles the programs of a package into a folder, and writes the licences of the bundled packages next to them. */
async function bundlePrograms(
  name: PackageName,
  { bin = {} }: SourceManifest,
  folder: string,
): Promise<void> {
  const modules = new Set<string>();
  for (const [program, source] of Object.entries(bin)) {
    const url = pathToFileURL(join(ROOT, 'packages', name, source));
    for (const each of (await bundle(url, folder, program)).modules) modules.add(each);
  }
  if (modules.size > 0) writeFileSync(join(folder, 'NOTICES.txt'), notices([...modules]));
}

function sourceManifest(name: PackageName): SourceManifest {
  return JSON.parse(readFileSync(join(ROOT, 'packages', name, 'package.json'), 'utf8'));
}
