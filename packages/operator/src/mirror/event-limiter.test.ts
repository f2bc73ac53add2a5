import { VirtualClock } from '@vmwright/core/testing';
import { expect, test } from 'vitest';
import { EventLimiter } from './event-limiter.ts';

function start() {
  const clock = new VirtualClock();
  const limiter = new EventLimiter(clock);
  const acquire = (count: number, series?: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => limiter.tryAcquire(series?.(at))).filter(Boolean).length;
  return { clock, limiter, acquire };
}

test('of ten thousand simultaneous events, a hundred are allowed', () => {
  expect(start().acquire(10_000)).toBe(100);
});

test('after a burst, five events per second are allowed; after a long pause, another burst is allowed', () => {
  const { clock, acquire } = start();
  acquire(100);
  clock.advance(1_000);
  expect(acquire(100)).toBe(5);
  clock.advance(3_600_000);
  expect(acquire(1_000)).toBe(100);
});

test('of the events that are limited per VM, one per minute is allowed for each VM', () => {
  const { clock, limiter } = start();
  expect(limiter.tryAcquire('tenant/web')).toBe(true);
  expect(limiter.tryAcquire('tenant/web')).toBe(false);
  expect(limiter.tryAcquire('tenant/db')).toBe(true);
  clock.advance(59_999);
  expect(limiter.tryAcquire('tenant/web')).toBe(false);
  clock.advance(1);
  expect(limiter.tryAcquire('tenant/web')).toBe(true);
});

test('an event that exceeds the limit of its VM does not count towards the limit for all VMs', () => {
  const { limiter, acquire } = start();
  limiter.tryAcquire('tenant/web');
  for (let at = 0; at < 1_000; at++) limiter.tryAcquire('tenant/web');
  expect(acquire(1_000)).toBe(99);
});

test('an event that exceeds the limit for all VMs does not count towards the limit of its VM', () => {
  const { clock, limiter, acquire } = start();
  acquire(100);
  expect(limiter.tryAcquire('tenant/web')).toBe(false);
  clock.advance(1_000);
  expect(limiter.tryAcquire('tenant/web')).toBe(true);
});
