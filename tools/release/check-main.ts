/**
 * `make release-check TAG=v1.2.3`: fails unless the published packages, the chart, the manifests and the changelog have
 * the version of the tag. Needs no npm packages, so that a release fails before anything is installed.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PACKAGES } from '../build/package-names.ts';
import { chartVersions } from '../chart/chart.ts';
import { releaseProblems } from './version.ts';

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
const manifests = PACKAGES.map((name) => `packages/${name}/package.json`);
const { version, appVersion } = chartVersions();
const deployment = 'config/manager/deployment.yaml';
const versions = new Map<string, string>([
  ...manifests.map((path): [string, string] => [`version in ${path}`, JSON.parse(read(path)).version]),
  ['version in charts/vmwright/Chart.yaml', version],
  ['appVersion in charts/vmwright/Chart.yaml', appVersion],
  [`image in ${deployment}`, /image: vmwright:(\S+)/.exec(read(deployment))?.[1] ?? 'none'],
]);
for (const problem of releaseProblems(process.env.TAG ?? '', versions, read('CHANGELOG.md'))) {
  console.error(problem);
  process.exitCode = 1;
}
