import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { kindDocs } from './kinds.ts';

const SOURCES = fileURLToPath(new URL('../', import.meta.url));
const PAGES = fileURLToPath(new URL('../../../../docs/', import.meta.url));

const docs = new Map(kindDocs().map((doc) => [doc.kind, doc]));

test('the documentation of a field contains its path, its type with limits, and its default', () => {
  const spec = new Map(docs.get('VmGroup')?.spec.map((field) => [field.path, field]));
  expect(spec.get('cpu')).toMatchObject({ type: 'integer, 1 to 768', byDefault: 'required' });
  expect(spec.get('placement.folder')).toMatchObject({ type: 'string', byDefault: '' });
  expect(spec.get('update.strategy')?.type).toBe('`RollingUpdate`, `OnDelete`');
  const status = docs.get('VmGroup')?.status.map(({ path }) => path);
  expect(status).toEqual(expect.arrayContaining(['replicas', 'replicas[].slot', 'conditions']));
  expect(status).not.toContain('conditions[].type');
  const request = docs.get('GPUInfo')?.spec.find(({ path }) => path === 'gpuRequired');
  expect(request).toMatchObject({ type: 'boolean', byDefault: 'false' });
});

test('validation rules are listed with the path that the validation error names', () => {
  const paths = docs.get('VirtualMachine')?.rules.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(['', 'users[]', 'resources.diskSize', 'resources.cpu']));
  expect(docs.get('VM')?.rules).toContainEqual({
    path: 'status.vmId',
    message: 'the vmId of a machine cannot be changed or removed',
  });
});

/** Matches the reasons of events and conditions in the sources of a kind. */
const REASONS =
  /\b(?:reason:|(?:normal|warning|fail|wait|problem|failed|retryable|terminal|ready)\()\s*'([A-Z]\w+)'/g;

describe('the docs page of a kind explains every condition and event reason in the source code of the kind', () => {
  test.each([...docs.keys()])('%s', (kind) => {
    const folder = kind.toLowerCase();
    const page = readFileSync(`${PAGES}${folder}.md`, 'utf8');
    const files = readdirSync(`${SOURCES}${folder}`).filter((name) => /^[^.]+\.ts$/.test(name));
    const reasons = files.flatMap((name) =>
      [...readFileSync(`${SOURCES}${folder}/${name}`, 'utf8').matchAll(REASONS)].map(
        ([, reason = '']) => reason,
      ),
    );
    expect(reasons.length).toBeGreaterThan(5);
    const isExplained = (reason: string) => page.includes(`\`${reason}\``);
    expect([...new Set(reasons)].filter((reason) => !isExplained(reason))).toEqual([]);
  });
});

test('the list of reasons in troubleshooting.md has every condition reason of every kind', () => {
  const page = readFileSync(`${PAGES}troubleshooting.md`, 'utf8');
  for (const { kind, conditions } of docs.values())
    for (const reason of conditions.flatMap(({ reasons }) => reasons))
      expect(page.includes(`\`${reason}\``), `${kind} ${reason}`).toBe(true);
});
