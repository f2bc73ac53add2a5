import { expect, test } from 'vitest';
import { pollingOf } from './polling.ts';

test('the interval and the timeout of the default settings are not shortened', () => {
  const polling = pollingOf({ refreshMs: 15_000, timeoutMs: 10_000, unknownAfterMs: 25_000 });
  expect(polling).toEqual({ listTimeoutMs: 10_000, everyMs: 15_000 });
});

test('interval and timeout of lists together take at most unknownAfterMs, even with a long refreshMs', () => {
  for (const timeoutMs of [1_000, 10_000, 60_000]) {
    const { listTimeoutMs, everyMs } = pollingOf({ refreshMs: 600_000, timeoutMs, unknownAfterMs: 25_000 });
    expect(everyMs + listTimeoutMs).toBeLessThanOrEqual(25_000);
    expect(everyMs).toBeGreaterThanOrEqual(12_500);
  }
});
