import { expect, test } from 'vitest';
import { page, play } from './played.ts';
import { install } from './with-cloud.ts';

test('the commands of docs/vm.md print the documented output', async () => {
  await using env = await install();
  expect(await play(page('vm.md'), env.kubectl)).toBe(4);
}, 180_000);
