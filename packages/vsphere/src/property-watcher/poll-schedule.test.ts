import { expect, test } from 'vitest';
import { FakeWorld } from '../../test/fake-world.ts';
import { BatchingSchedule } from './poll-schedule.ts';

const PAUSE_MS = 500;
const { signal } = new AbortController();

function setup() {
  const world = new FakeWorld(() => ({ text: '' }));
  const schedule = new BatchingSchedule(world, () => PAUSE_MS);
  const pauseLength = async (hadUpdates = true) => {
    const before = world.monotonic();
    await world.runUntilSettled(schedule.waitForNextPoll(hadUpdates, signal));
    return world.monotonic() - before;
  };
  return { world, schedule, pauseLength };
}

test('a pause follows a response with updates, but not a response without updates', async () => {
  const { pauseLength } = setup();
  expect(await pauseLength()).toBe(PAUSE_MS);
  expect(await pauseLength(false)).toBe(0);
});

test('flush ends the current pause but not the next one', async () => {
  const { world, schedule, pauseLength } = setup();
  const next = schedule.waitForNextPoll(true, signal);
  world.advance(100);
  schedule.flush();
  await next;
  expect(world.monotonic()).toBe(100);
  expect(await pauseLength()).toBe(PAUSE_MS);
});

test('flush while a request is in flight skips the pause after its response', async () => {
  const { schedule, pauseLength } = setup();
  schedule.flush();
  expect(await pauseLength()).toBe(0);
  expect(await pauseLength()).toBe(PAUSE_MS);
});

test('an aborted signal ends the pause', async () => {
  const { schedule } = setup();
  const controller = new AbortController();
  const next = schedule.waitForNextPoll(true, controller.signal);
  controller.abort(new Error('enough'));
  await expect(next).rejects.toThrow('enough');
});
