import { nodeWorld, type World } from '@vmwright/core';
import { expect, test } from 'vitest';
import { VirtualClock } from '../../test/virtual-clock.ts';
import { Poller } from './sources.ts';

/** Lets all that has become possible happen. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('a poller asks about every so often, never at the same pace, and goes on after a failure', async () => {
  const clock = new VirtualClock();
  const chances = [0, 0.999, 0.5, 0.5];
  const world: World = {
    ...nodeWorld,
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
    random: () => chances.shift() ?? 0.5,
  };
  const [asked, woken, errors]: [number[], string[], unknown[]] = [[], [], []];
  const started = clock.monotonic();
  const { source } = new Poller({
    world,
    everyMs: 10_000,
    poll: async () => {
      asked.push(clock.monotonic() - started);
      if (asked.length === 2) throw new Error('the outside is away');
      return [`key-${asked.length}`];
    },
    onError: (error) => errors.push(error),
  });
  const stop = new AbortController();
  const running = source((key) => woken.push(key), stop.signal);
  await settle();
  for (let second = 0; second < 45; second++) {
    clock.advance(1_000);
    await settle();
  }
  expect(asked.map((ms) => Math.round(ms / 1_000))).toEqual([0, 8, 20, 30, 40]);
  expect(woken).toEqual(['key-1', 'key-3', 'key-4', 'key-5']);
  expect(String(errors)).toContain('the outside is away');
  stop.abort();
  await running;
});

test('a poller that is told of something on its way comes sooner, and never later', async () => {
  const clock = new VirtualClock();
  const world: World = {
    ...nodeWorld,
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
    random: () => 0.5,
  };
  const asked: number[] = [];
  const started = clock.monotonic();
  const poller: Poller = new Poller({
    world,
    everyMs: 10_000,
    poll: async () => {
      asked.push((clock.monotonic() - started) / 1_000);
      if (asked.length === 3) poller.within(2_000); // while it asks
      return [];
    },
    onError: () => undefined,
  });
  const stop = new AbortController();
  const running = poller.source(() => undefined, stop.signal);
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await settle();
      clock.advance(1_000);
    }
    await settle();
  };
  await pass(3);
  poller.within(60_000);
  poller.within(2_000);
  poller.within(4_000);
  await pass(29);
  expect(asked).toEqual([0, 5, 15, 17, 27]);
  stop.abort();
  await running;
});
