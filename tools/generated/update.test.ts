import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@vmwright/testbed';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { updateAll } from './update.ts';

let folder: string;
let reports: string[];
const { argv, exitCode } = process;

beforeEach(async () => {
  folder = await temporaryFolder('generated');
  mkdirSync(join(folder, 'a'));
  for (const name of ['a/old.yaml', 'a/stale.yaml', 'a/foreign.md'])
    writeFileSync(join(folder, name), 'before');
  reports = [];
  vi.spyOn(console, 'error').mockImplementation((text) => void reports.push(String(text)));
});
afterEach(() => {
  Object.assign(process, { argv, exitCode });
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** Generates `a/old.yaml` and `b/new.yaml`, and no other YAML file. */
function generate(...args: readonly string[]): void {
  process.argv = [...argv.slice(0, 2), ...args];
  const files = ['a/old.yaml', 'b/new.yaml'].map((name) => [join(folder, name), 'after'] as const);
  updateAll(new Map(files), [`${folder}/**/*.yaml`]);
}

test('generated files are written, and files that are not generated any more are removed', () => {
  generate();
  const contents = ['a/old.yaml', 'b/new.yaml', 'a/foreign.md'].map((name) =>
    readFileSync(join(folder, name), 'utf8'),
  );
  expect(contents).toEqual(['after', 'after', 'before']);
  expect(existsSync(join(folder, 'a/stale.yaml'))).toBe(false);
  generate('--check');
  expect([reports, process.exitCode]).toEqual([[], exitCode]);
});

test('with --check, each difference is reported and nothing is written', () => {
  generate('--check');
  const differing = ['a/old.yaml', 'a/stale.yaml', 'b/new.yaml'].map(
    (name) => `${join(folder, name)} is out of date; run \`make generate\` and commit the result`,
  );
  expect([reports.toSorted(), process.exitCode]).toEqual([differing, 1]);
  expect(readFileSync(join(folder, 'a/old.yaml'), 'utf8')).toBe('before');
  expect(existsSync(join(folder, 'b/new.yaml'))).toBe(false);
});
