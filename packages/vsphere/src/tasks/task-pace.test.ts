import { expect, test } from 'vitest';
import { FakeWorld } from '../../test/fake-world.ts';
import { TaskPace } from './task-pace.ts';

const { signal } = new AbortController();
const world = new FakeWorld(() => ({ text: '' }));

/** How long it takes until the next question. */
async function pauseOf(pace: TaskPace): Promise<number> {
  const before = world.monotonic();
  await world.through(pace.next(true, signal));
  return world.monotonic() - before;
}

test('the more answers tell of others alone, the longer until the next question, up to a quarter of a second', async () => {
  const pace = new TaskPace(world, () => true);
  pace.told(true);
  const ours = await pauseOf(pace);
  const pauses: number[] = [];
  for (let i = 0; i < 5; i++) {
    pace.told(false);
    pauses.push(await pauseOf(pace));
  }
  expect(pauses).toEqual([2 * ours, 4 * ours, 250, 250, 250]);
  pace.told(true);
  expect(await pauseOf(pace)).toBe(ours);
  pace.told(false);
  pace.follow(); // what looked like another's was ours
  expect(await pauseOf(pace)).toBe(ours);
});

test('after an answer without news the next question is asked at once', async () => {
  const pace = new TaskPace(world, () => true);
  const before = world.monotonic();
  await world.through(pace.next(false, signal));
  expect(world.monotonic()).toBe(before);
});

test('while nothing is followed there is no question until something is, or it is given up', async () => {
  let isFollowing = false;
  const pace = new TaskPace(world, () => isFollowing);
  let isAsked = false;
  const asked = pace.next(true, signal).then(() => {
    isAsked = true;
  });
  world.advance(3_600_000);
  await Promise.resolve();
  expect(isAsked).toBe(false);
  isFollowing = true;
  pace.follow();
  await world.through(asked);

  isFollowing = false;
  const controller = new AbortController();
  const given = pace.next(true, controller.signal);
  controller.abort(new Error('enough'));
  await expect(given).rejects.toThrow('enough');
});
