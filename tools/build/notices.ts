import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { licenceProblem } from '../supply/licence.ts';

/**
 * Returns the licence texts of the third-party packages in a bundle. The licences require that a program includes them.
 * @param modules paths of the source files in the bundle
 * @throws Error if a package must not be part of a program because of its licence
 */
export function notices(modules: readonly string[]): string {
  const folders = new Set(modules.filter((path) => path.includes('/node_modules/')).map(packageFolder));
  return [...folders]
    .toSorted()
    .map(notice)
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/**
 * Returns the folder of the package that a file belongs to. Skips subfolders that have a package.json without a name.
 */
function packageFolder(path: string): string {
  let folder = dirname(path);
  while (!isPackage(folder)) folder = dirname(folder);
  return folder;
}

function isPackage(folder: string): boolean {
  const file = join(folder, 'package.json');
  return existsSync(file) && typeof JSON.parse(readFileSync(file, 'utf8')).name === 'string';
}

function notice(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const [file] = globSync('{LICENSE,LICENCE,License,license}{,.md,.txt}', { cwd: folder });
  const problem = licenceProblem(name, version, license);
  if (problem !== undefined) throw new Error(problem);
  const text = file === undefined ? '' : `\n\n${readFileSync(join(folder, file), 'utf8').trim()}`;
  return `${name} ${version}: ${license}${text}\n`;
}
