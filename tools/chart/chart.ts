import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { type Entry, tar } from '../image/tar.ts';

const FOLDER = fileURLToPath(new URL('../../charts/vmwright', import.meta.url));

/** Line of values.yaml that a release replaces. */
const REPOSITORY_LINE = /^ {2}repository: vmwright\b.*$/m;

/**
 * Returns the archive of the chart in the format of `helm package`. All files have the same fixed time, so that the
 * same sources give the same archive.
 * @param repository `owner/name` on GitHub. If given, Chart.yaml in the archive names this repository, and values.yaml
 * names the image in its container registry. @default both files are packed unchanged
 */
export function chartArchive(repository = ''): Uint8Array {
  const files = globSync('{.helmignore,*.*,{files,templates}/**/*.*}', { cwd: FOLDER }).toSorted();
  const entries = files.map((file): Entry => {
    const text = readFileSync(join(FOLDER, file), 'utf8');
    const content = Buffer.from(repository === '' ? text : released(file, text, repository));
    return { path: `vmwright/${file}`, mode: 0o644, content };
  });
  return gzipSync(tar(entries), { level: 9 });
}

function released(file: string, text: string, repository: string): string {
  if (file === 'Chart.yaml') return `${text}sources:\n  - https://github.com/${repository}\n`;
  if (file !== 'values.yaml') return text;
  if (!REPOSITORY_LINE.test(text)) throw new Error('values.yaml has no line "  repository: vmwright"');
  return text.replace(REPOSITORY_LINE, () => `  repository: ${imageOf(repository)}`);
}

/** Returns the name of the image of a GitHub repository. It is in lower case, because image names must be. */
function imageOf(repository: string): string {
  return `ghcr.io/${repository.toLowerCase()}`;
}

/** Versions in Chart.yaml: of the chart, and of the image that it installs. */
export interface ChartVersions {
  readonly version: string;
  readonly appVersion: string;
}

/**
 * Returns the versions in Chart.yaml. Needs no YAML parser, so that a release can be checked and pushed without npm
 * packages.
 */
export function chartVersions(): ChartVersions {
  const text = readFileSync(join(FOLDER, 'Chart.yaml'), 'utf8');
  const value = (key: string) => new RegExp(`^${key}: (\\S+)$`, 'm').exec(text)?.[1] ?? '';
  return { version: value('version'), appVersion: value('appVersion') };
}

/** Path of the archive that `make chart` writes. */
export function archivePath(): string {
  return fileURLToPath(new URL(`../../dist/vmwright-${chartVersions().version}.tgz`, import.meta.url));
}
