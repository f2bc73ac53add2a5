import { expect, test } from 'vitest';
import { FakeWorld } from '../../test/fake-world.ts';
import { Pause } from './pace.ts';

const PAUSE_MS = 500;
const { signal } = new AbortController();

function started() {
  const world = new FakeWorld(() => ({ text: '' }));
  const pause = new Pause(world, () => PAUSE_MS);
  const lasted = async (wasTold = true) => {
    const before = world.monotonic();
    await world.through(pause.next(wasTold, signal));
    return world.monotonic() - before;
  };
  return { world, pause, lasted };
}

test('it pauses after an answer that told something, and not after one that did not', async () => {
  const { lasted } = started();
  expect(await lasted()).toBe(PAUSE_MS);
  expect(await lasted(false)).toBe(0);
});

test('who hurries it ends the pause it is in, and no other', async () => {
  const { world, pause, lasted } = started();
  const next = pause.next(true, signal);
  world.advance(100);
  pause.hurry();
  await next;
  expect(world.monotonic()).toBe(100);
  expect(await lasted()).toBe(PAUSE_MS);
});

test('who hurries it while it waits for an answer saves the pause after that', async () => {
  const { pause, lasted } = started();
  pause.hurry();
  expect(await lasted()).toBe(0);
  expect(await lasted()).toBe(PAUSE_MS);
});

test('it ends with the signal', async () => {
  const { pause } = started();
  const controller = new AbortController();
  const next = pause.next(true, controller.signal);
  controller.abort(new Error('enough'));
  await expect(next).rejects.toThrow('enough');
});
