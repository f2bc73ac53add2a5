import { describe, expect, test } from 'vitest';
import { Choices } from './choices.ts';
import { Simulation, seeded } from './simulation.ts';
import { EPOCH_MS } from './world.ts';

/** A simulation without randomness: every delay is the shortest. */
const calm = () => new Simulation({ choices: Choices.replayed([]) });

describe('simulated processes', () => {
  test('a crashed process runs no more timers, and a new process with the same name has a new clock', async () => {
    const simulation = calm();
    const world = simulation.start('a');
    const seen: string[] = [];
    world.after(10, () => seen.push('before'));
    world.after(30, () => seen.push('after'));
    simulation.schedule.after(20, () => world.process.crash());
    simulation.schedule.after(40, () => {
      const restarted = simulation.start('a');
      seen.push(`restarted at ${restarted.monotonic()}`);
    });
    await simulation.run({ until: 100 });
    expect(seen).toEqual(['before', 'restarted at 0']);
  });

  test('a resumed process runs the timers that expired, unless an earlier callback cancels them', async () => {
    const simulation = calm();
    const world = simulation.start('a');
    const seen: string[] = [];
    world.after(10, () => {
      seen.push(`first at ${world.monotonic()}`);
      second.cancel();
    });
    const second = world.after(20, () => seen.push('second'));
    world.after(30, () => seen.push(`third at ${world.monotonic()}`));
    simulation.schedule.after(5, () => world.process.pause());
    simulation.schedule.after(50, () => world.process.resume());
    await simulation.run({ until: 100 });
    expect(seen).toEqual(['first at 50', 'third at 50']);
  });

  test('a change of the clock skew moves the wall clock of a process, but not its monotonic clock', async () => {
    const simulation = calm();
    const world = simulation.start('a');
    world.process.skewMs = 5_000;
    const seen: (readonly [number, number])[] = [];
    const readClocks = () => seen.push([world.now() - EPOCH_MS, world.monotonic()]);
    world.after(10, readClocks);
    simulation.schedule.after(15, () => (world.process.skewMs = -1_000));
    world.after(20, readClocks);
    await simulation.run({ until: 100 });
    expect(seen).toEqual([
      [5_010, 10],
      [-980, 20],
    ]);
  });

  test('a simulated process generates unique version 4 UUIDs, and the same sequence for the same seed', () => {
    const ids = () => {
      const world = seeded(3).start('a');
      return Array.from({ length: 1_000 }, () => world.uuid());
    };
    expect(new Set(ids()).size).toBe(1_000);
    for (const id of ids())
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(ids()).toEqual(ids());
  });
});
