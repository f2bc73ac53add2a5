import { expect, test } from 'vitest';
import { OPTIONS } from '../src/settings/flags.ts';
import { page } from './doc-commands.ts';

test('configuration.md, vm.md and vmgroup.md document every flag once, with its default', () => {
  const text = ['configuration.md', 'vm.md', 'vmgroup.md'].map(page).join('\n');
  const documented = [...text.matchAll(/^\| `--([\w-]+)` +\| (?:`([^`-][^`]*)`|[^|]*?) +\|/gm)].map(
    ([, flag = '', value]) => [flag, value],
  );
  const flags = Object.entries(OPTIONS).map(([flag, option]) => [
    flag,
    'default' in option ? option.default : undefined,
  ]);
  expect(documented.sort()).toEqual(flags.sort());
});
