/** `make release-check TAG=v1.2.3`: fails unless all published packages and the changelog have the version of the tag. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PACKAGES } from '../build/build.ts';
import { releaseProblems } from './version.ts';

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
const manifests = PACKAGES.map((name) => JSON.parse(read(`packages/${name}/package.json`)));
const versions = new Map<string, string>(manifests.map(({ name, version }) => [name, version]));
for (const problem of releaseProblems(process.env.TAG ?? '', versions, read('CHANGELOG.md'))) {
  console.error(problem);
  process.exitCode = 1;
}
