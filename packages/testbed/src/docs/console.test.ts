import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { consoleCommands, shapeOf } from './console.ts';

const DOCS = fileURLToPath(new URL('../../../../docs/', import.meta.url));

test('consoleCommands returns the commands of all console blocks with their output', () => {
  const page =
    'a\n```console\n$ one -f x\nfirst\nsecond\n$ two\n```\n```sh\n$ no\n```\n```console\n$ three\n```\n';
  expect(consoleCommands(page)).toEqual([
    { line: 'one -f x', output: ['first', 'second'] },
    { line: 'two', output: [] },
    { line: 'three', output: [] },
  ]);
});

test('shapeOf ignores differences in ids, CPU, ages and widths, but no other differences', () => {
  const row = 'web    web-1   Running   5f0f5a4e-6b1c-4b73-9d0d-0c2f6e8f3f5e   42    9s';
  expect(shapeOf('web  web-1  Running  00000000-6b1c-4b73-9d0d-0c2f6e8f3f5e  7  1m2s')).toBe(shapeOf(row));
  expect(shapeOf(row.replace('Running', 'Unknown'))).not.toBe(shapeOf(row));
  expect(shapeOf('web RUNNING 3 3 2 1')).not.toBe(shapeOf('web RUNNING 3 5 2 1'));
});

describe('the example file of a page contains the first manifest of the page', () => {
  test.each(['vm', 'vmgroup', 'virtualmachine', 'vmdiskimage', 'gpuinfo'])('%s', (kind) => {
    const [, manifest = ''] = /^```yaml\n(.*?)^```$/ms.exec(readFileSync(`${DOCS}${kind}.md`, 'utf8')) ?? [];
    expect(manifest).not.toBe('');
    expect(readFileSync(`${DOCS}examples/${kind}.yaml`, 'utf8')).toContain(manifest);
  });
});
