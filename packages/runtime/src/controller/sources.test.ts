import { expect, test } from 'vitest';
import { VirtualClock } from '../../test/virtual-clock.ts';
import { nodeWorld } from '../world/node/node-world.ts';
import type { World } from '../world/world.ts';
import { poll } from './sources.ts';

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
  const source = poll(
    world,
    10_000,
    async () => {
      asked.push(clock.monotonic() - started);
      if (asked.length === 2) throw new Error('the outside is away');
      return [`key-${asked.length}`];
    },
    (error) => errors.push(error),
  );
  const stop = new AbortController();
  const running = source((key) => woken.push(key), stop.signal);
  for (let second = 0; second < 45; second++) {
    clock.advance(1_000);
    await settle();
  }
  expect(asked.map((ms) => Math.round(ms / 1_000))).toEqual([8, 20, 30, 40]);
  expect(woken).toEqual(['key-1', 'key-3', 'key-4']);
  expect(String(errors)).toContain('the outside is away');
  stop.abort();
  await running;
});
