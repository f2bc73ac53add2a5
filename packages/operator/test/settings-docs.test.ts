import { expect, test } from 'vitest';
import { OPTIONS } from '../src/settings/flags.ts';
import { page } from './doc-commands.ts';

test('configuration.md and the pages of the kinds document every flag once, with its default', () => {
  const pages = ['configuration', 'vm', 'vmgroup', 'virtualmachine', 'vmdiskimage'];
  const text = pages.map((name) => page(`${name}.md`)).join('\n');
  const documented = [...text.matchAll(/^\| `--([\w-]+)` +\| (?:`([^`-][^`]*)`|[^|]*?) +\|/gm)].map(
    ([, flag = '', value]) => [flag, value],
  );
  const flags = Object.entries(OPTIONS).map(([flag, option]) => [
    flag,
    'default' in option ? option.default : undefined,
  ]);
  expect(documented.sort()).toEqual(flags.sort());
});
