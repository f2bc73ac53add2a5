import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Entry } from './tar.ts';

/** Path of Node in the base image: https://github.com/GoogleContainerTools/distroless. */
export const NODE = '/nodejs/bin/node';

const HOME = 'usr/local/lib/vmwright';
const BIN = 'usr/local/bin';

/**
 * Returns the files of the image's own layer: the bundled programs, package.json and LICENSE, and links to the programs
 * where the manifests expect them. No other files of the package are needed, because the bundles contain all imports.
 * @param packageFolder the operator's package as it is published
 */
export function layerEntries(packageFolder: string): readonly Entry[] {
  const { bin }: { bin: Record<string, string> } = JSON.parse(
    readFileSync(join(packageFolder, 'package.json'), 'utf8'),
  );
  const files = globSync('{package.json,LICENSE,bin/**/*.*}', { cwd: packageFolder }).toSorted();
  const folders = new Set(files.flatMap((file) => ancestors(`${HOME}/${file}`)));
  for (const each of ancestors(`${BIN}/x`)) folders.add(each);
  const programs = new Set(Object.values(bin).map((path) => path.replace(/^\.\//, '')));
  return [
    ...[...folders].toSorted().map((path) => ({ path: `${path}/`, mode: 0o755 })),
    ...files.map((file) => {
      const content = readFileSync(join(packageFolder, file));
      const path = `${HOME}/${file}`;
      if (!programs.has(file)) return { path, mode: 0o644, content };
      const code = content.toString().replace(/^#!.*/, `#!${NODE}`);
      return { path, mode: 0o755, content: Buffer.from(code) };
    }),
    ...Object.entries(bin).map(([name, path]) => ({
      path: `${BIN}/${name}`,
      mode: 0o777,
      link: join('../lib/vmwright', path),
    })),
  ];
}

/** Returns the folders above a file. */
function ancestors(path: string): readonly string[] {
  const folder = dirname(path);
  return folder === '.' ? [] : [...ancestors(folder), folder];
}
