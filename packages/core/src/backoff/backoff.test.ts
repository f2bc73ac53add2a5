import { expect, test } from 'vitest';
import { exponentialMs, jittered } from './backoff.ts';

test('the delay doubles with each failure, up to its maximum', () => {
  const options = { baseMs: 100, maxMs: 1_000 };
  expect([0, 1, 2, 3, 4, 5, 2_000].map((failures) => exponentialMs(failures, options))).toEqual([
    0, 100, 200, 400, 800, 1_000, 1_000,
  ]);
});

test('jitter stays within its fraction of the delay', () => {
  const at = (random: number, fraction?: number) => jittered({ random: () => random }, 1_000, fraction);
  expect([at(0), at(0.5), at(1)]).toEqual([500, 1_000, 1_500]);
  expect([at(0, 0.25), at(0.5, 0.25), at(1, 0.25)]).toEqual([750, 1_000, 1_250]);
});
