import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { nodeWorld } from './node-world.ts';

const DAY_MS = 24 * 60 * 60_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a timer of 60 days, longer than setTimeout supports, fires after 60 days', () => {
  const callback = vi.fn();
  nodeWorld.after(60 * DAY_MS, callback);
  vi.advanceTimersByTime(60 * DAY_MS - 1);
  expect(callback).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(callback).toHaveBeenCalledOnce();
});

test('a timer of 60 days that is cancelled after 30 days never fires', () => {
  const callback = vi.fn();
  const timer = nodeWorld.after(60 * DAY_MS, callback);
  vi.advanceTimersByTime(30 * DAY_MS);
  timer.cancel();
  vi.advanceTimersByTime(60 * DAY_MS);
  expect(callback).not.toHaveBeenCalled();
});
