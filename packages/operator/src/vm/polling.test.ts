import { expect, test } from 'vitest';
import { pollingOf } from './polling.ts';

test('with the default settings, the interval and the timeout of list requests are not shortened', () => {
  const polling = pollingOf({ refreshMs: 15_000, timeoutMs: 10_000, unknownAfterMs: 25_000 });
  expect(polling).toEqual({ listTimeoutMs: 10_000, everyMs: 15_000 });
});

test('the interval and the timeout of list requests add up to at most unknownAfterMs, even with a long refreshMs', () => {
  for (const timeoutMs of [1_000, 10_000, 60_000]) {
    const { listTimeoutMs, everyMs } = pollingOf({ refreshMs: 600_000, timeoutMs, unknownAfterMs: 25_000 });
    expect(everyMs + listTimeoutMs).toBeLessThanOrEqual(25_000);
    expect(everyMs).toBeGreaterThanOrEqual(12_500);
  }
});
