import { expect, test } from 'vitest';
import { OPTIONS } from '../src/settings/flags.ts';
import { page } from './played.ts';

test('the settings of docs/vm.md and docs/vmgroup.md are all there are, with their defaults', () => {
  const text = `${page('vm.md')}\n${page('vmgroup.md')}`;
  const documented = [...text.matchAll(/^\| `--([\w-]+)` +\| (?:`([^`-][^`]*)`|[^|]*?) +\|/gm)].map(
    ([, flag = '', value]) => [flag, value],
  );
  const flags = Object.entries(OPTIONS).map(([flag, option]) => [
    flag,
    'default' in option ? option.default : undefined,
  ]);
  expect(documented.sort()).toEqual(flags.sort());
});
