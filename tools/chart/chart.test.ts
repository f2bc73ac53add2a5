import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Assets, run, temporaryFolder } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { chartArchive, chartVersions } from './chart.ts';

const SOURCES = fileURLToPath(new URL('../../charts/vmwright', import.meta.url));

let folder: string;
let archive: string;

beforeAll(async () => {
  folder = await temporaryFolder('chart');
  archive = join(folder, 'vmwright.tgz');
  writeFileSync(archive, chartArchive('Example/VMwright'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function helm(...args: readonly string[]): Promise<string> {
  return (await run(await new Assets().path('helm'), args)).stdout;
}

test('`helm show chart` prints version, appVersion and sources of the packaged chart', async () => {
  const { version, appVersion } = chartVersions();
  expect(appVersion).toBe(version);
  expect(parse(await helm('show', 'chart', archive))).toMatchObject({
    name: 'vmwright',
    version,
    appVersion,
    sources: ['https://github.com/Example/VMwright'],
  });
  expect(await helm('lint', '--strict', archive)).toContain('0 chart(s) failed');
});

test('the packaged chart renders the same objects as its sources, but with the image of the release', async () => {
  const rendered = (chart: string, ...args: readonly string[]) =>
    helm('template', 'vmwright', chart, ...args);
  const optional = ['ssvirt', 'serviceMonitor', 'prometheusRule', 'dashboards', 'certManager'];
  const all = optional.map((name) => `--set=${name}.enabled=true`);
  const packaged = await rendered(archive, ...all);
  expect(packaged).toContain(`image: ghcr.io/example/vmwright:${chartVersions().version}\n`);
  expect(packaged).toBe(await rendered(SOURCES, ...all, '--set=image.repository=ghcr.io/example/vmwright'));
});

test('all files in the archive have the same fixed time, so that the same sources give the same archive', async () => {
  const listed = await run('tar', ['-tvzf', archive], { env: { ...process.env, TZ: 'UTC' } });
  const lines = listed.stdout.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(30);
  for (const line of lines) expect(line).toContain(' 1970-01-01 00:00 vmwright/');
});
