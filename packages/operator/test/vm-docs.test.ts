import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { settingsFrom } from '../src/index.ts';
import { install } from './installed.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const page = readFileSync(`${ROOT}docs/vm.md`, 'utf8');

test('the commands of docs/vm.md do what it says', async () => {
  await using it = await install();
  const [, block = ''] = /```console\n([\s\S]*?)```/.exec(page) ?? [];
  const commands = block.split(/^\$ /m).slice(1);
  expect(commands).toHaveLength(4);
  for (const command of commands) {
    const [line = '', ...told] = command.trimEnd().split('\n');
    const args = line.replace('config/', `${ROOT}config/`).split(' ').slice(1);
    const said = (await it.kubectl(...args)).trimEnd().split('\n');
    expect(said.map(shape), line).toEqual(told.map(shape));
  }
}, 180_000);

test('the settings of docs/vm.md are all there are, with their defaults', () => {
  const { cloud } = settingsFrom([], { CLOUD_URL: 'http://c', CLOUD_API_KEY: 'k' });
  expect(page).toContain('| `--cloud-timeout`            | `10s` ');
  expect(cloud).toMatchObject({ timeoutMs: 10_000, refreshMs: 15_000, sweepMs: 60_000, concurrency: 8 });
});

/** What differs from one run to the next is of the same kind. */
function shape(line: string): string {
  return line
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replace(/(<id>\s+)\d+/, '$1<cpu>')
    .replace(/\d+s$/, '<age>')
    .replace(/\s+/g, ' ');
}
