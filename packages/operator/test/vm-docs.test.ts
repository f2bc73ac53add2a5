import { expect, test } from 'vitest';
import { page, runCommands } from './doc-commands.ts';
import { install } from './with-cloud.ts';

test('the commands of docs/vm.md print the documented output', async () => {
  await using env = await install();
  expect(await runCommands(page('vm.md'), env.kubectl)).toBe(4);
}, 180_000);
