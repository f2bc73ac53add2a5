import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { OPTIONS } from '../src/settings/settings.ts';
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
  const documented = new Map(
    [...page.matchAll(/^\| `--([\w-]+)` +\| (?:`([^`]*)`|[^|]*?) +\|/gm)].map(([, flag = '', value]) => [
      flag,
      value,
    ]),
  );
  const flags = Object.entries(OPTIONS).map(([flag, option]) => [
    flag,
    'default' in option ? option.default : undefined,
  ]);
  expect([...documented].sort()).toEqual(flags.sort());
});

/** What differs from one run to the next is of the same kind. */
function shape(line: string): string {
  return line
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replace(/(<id>\s+)\d+/, '$1<cpu>')
    .replace(/\d+s$/, '<age>')
    .replace(/\s+/g, ' ');
}
