import { expect, test } from 'vitest';
import { FakeWorld } from '../../test/fake-world.ts';
import { TaskPollSchedule } from './task-poll-schedule.ts';

const { signal } = new AbortController();
const world = new FakeWorld(() => ({ text: '' }));

/** Returns the time until the next poll. */
async function pauseOf(schedule: TaskPollSchedule): Promise<number> {
  const before = world.monotonic();
  await world.runUntilSettled(schedule.waitForNextPoll(true, signal));
  return world.monotonic() - before;
}

test('the pause between polls doubles with each response that contains no followed task, up to 250 ms', async () => {
  const schedule = new TaskPollSchedule(world, () => true);
  schedule.received(true);
  const base = await pauseOf(schedule);
  const pauses: number[] = [];
  for (let i = 0; i < 5; i++) {
    schedule.received(false);
    pauses.push(await pauseOf(schedule));
  }
  expect(pauses).toEqual([2 * base, 4 * base, 250, 250, 250]);
  schedule.received(true);
  expect(await pauseOf(schedule)).toBe(base);
  schedule.received(false);
  schedule.followed(); // the task of the last response is followed now
  expect(await pauseOf(schedule)).toBe(base);
});

test('the next poll is due immediately after a response without updates', async () => {
  const schedule = new TaskPollSchedule(world, () => true);
  const before = world.monotonic();
  await world.runUntilSettled(schedule.waitForNextPoll(false, signal));
  expect(world.monotonic()).toBe(before);
});

test('no poll is due until a task is followed or the signal aborts', async () => {
  let isFollowing = false;
  const schedule = new TaskPollSchedule(world, () => isFollowing);
  let isDue = false;
  const due = schedule.waitForNextPoll(true, signal).then(() => {
    isDue = true;
  });
  world.advance(3_600_000);
  await Promise.resolve();
  expect(isDue).toBe(false);
  isFollowing = true;
  schedule.followed();
  await world.runUntilSettled(due);

  isFollowing = false;
  const controller = new AbortController();
  const aborted = schedule.waitForNextPoll(true, controller.signal);
  controller.abort(new Error('enough'));
  await expect(aborted).rejects.toThrow('enough');
});
