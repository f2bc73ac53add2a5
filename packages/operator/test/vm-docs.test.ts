import { expect, test } from 'vitest';
import { page, play } from './played.ts';
import { install } from './with-cloud.ts';

test('the commands of docs/vm.md do what it says', async () => {
  await using it = await install();
  expect(await play(page('vm.md'), it.kubectl)).toBe(4);
}, 180_000);
