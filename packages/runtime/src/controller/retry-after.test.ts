import { expect, test } from 'vitest';
import { apiError } from '../client/errors.ts';
import { retryAfterOf } from './retry-after.ts';

test('retryAfterOf returns the delay of a Retry-After, but at most one minute', () => {
  const delayFor = (retryAfterMs: number) => retryAfterOf(apiError('later', { status: 503, retryAfterMs }));
  expect([400, 60_000, 3_600_000, Number.NaN].map(delayFor)).toEqual([400, 60_000, 60_000, undefined]);
  expect(retryAfterOf(new Error('no'))).toBe(undefined);
});
