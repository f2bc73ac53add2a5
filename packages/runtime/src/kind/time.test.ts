import { expect, test } from 'vitest';
import { microTime } from './time.ts';

test('a MicroTime always has six fractional digits', () => {
  const ms = Date.UTC(2026, 0, 1);
  expect(microTime(ms)).toBe('2026-01-01T00:00:00.000000Z');
  expect(microTime(ms + 7)).toBe('2026-01-01T00:00:00.007000Z');
  expect(microTime(ms + 7.001)).toBe('2026-01-01T00:00:00.007001Z');
  expect(microTime(ms - 0.001)).toBe('2025-12-31T23:59:59.999999Z');
});
