import { expect, test } from 'vitest';
import { apiError } from '../client/errors.ts';
import { retryAfterOf } from './retry-after.ts';

test('a server is left alone for as long as it asks, but for one that means an hour and may be back in a minute', () => {
  const asked = (retryAfterMs: number) => retryAfterOf(apiError('later', { status: 503, retryAfterMs }));
  expect([400, 60_000, 3_600_000, Number.NaN].map(asked)).toEqual([400, 60_000, 60_000, undefined]);
  expect(retryAfterOf(new Error('no'))).toBe(undefined);
});
