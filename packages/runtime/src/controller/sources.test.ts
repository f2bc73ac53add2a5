import { nodeWorld, type World } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { expect, test } from 'vitest';
import { Poller } from './sources.ts';

/** Runs all pending promise callbacks. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('a poller polls with jitter and continues after a failure', async () => {
  const clock = new VirtualClock();
  const randoms = [0, 0.999, 0.5, 0.5];
  const world: World = {
    ...nodeWorld,
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
    random: () => randoms.shift() ?? 0.5,
  };
  const [polledAt, enqueued, errors]: [number[], string[], unknown[]] = [[], [], []];
  const started = clock.monotonic();
  const { source } = new Poller({
    world,
    everyMs: 10_000,
    poll: async () => {
      polledAt.push(clock.monotonic() - started);
      if (polledAt.length === 2) throw new Error('the backend is down');
      return [`key-${polledAt.length}`];
    },
    onError: (error) => errors.push(error),
  });
  const stop = new AbortController();
  const running = source((key) => enqueued.push(key), stop.signal);
  await settle();
  for (let second = 0; second < 45; second++) {
    clock.advance(1_000);
    await settle();
  }
  expect(polledAt.map((ms) => Math.round(ms / 1_000))).toEqual([0, 8, 20, 30, 40]);
  expect(enqueued).toEqual(['key-1', 'key-3', 'key-4', 'key-5']);
  expect(String(errors)).toContain('the backend is down');
  stop.abort();
  await running;
});

test('within() brings the next poll forward and never delays it', async () => {
  const clock = new VirtualClock();
  const world: World = {
    ...nodeWorld,
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
    random: () => 0.5,
  };
  const polledAt: number[] = [];
  const started = clock.monotonic();
  const poller: Poller = new Poller({
    world,
    everyMs: 10_000,
    poll: async () => {
      polledAt.push((clock.monotonic() - started) / 1_000);
      if (polledAt.length === 3) poller.within(2_000); // called during a poll
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
  expect(polledAt).toEqual([0, 5, 15, 17, 27]);
  stop.abort();
  await running;
});
