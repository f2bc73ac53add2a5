import { expect, test } from 'vitest';
import { bootMs, cpuAt, fails, type SimulatedSettings, stopMs } from './model.ts';

const settings: SimulatedSettings = {
  seed: 1,
  bootMs: { min: 100, max: 200 },
  stopMs: { min: 10, max: 20 },
  failureProbability: 0.3,
  cpu: { min: 10, max: 90, periodMs: 60_000, noise: 5 },
};
const ids = Array.from({ length: 2_000 }, (_, at) => `server-${at}`);

test('the behaviour of a machine depends only on the seed, the id and the time', () => {
  const behaviourOf = (seed: number, id: string) => {
    const seeded = { ...settings, seed };
    return [bootMs(seeded, id), stopMs(seeded, id), fails(seeded, id), cpuAt(seeded, id, 1e12)];
  };
  expect(ids.map((id) => behaviourOf(1, id))).toEqual(ids.map((id) => behaviourOf(1, id)));
  expect(ids.map((id) => behaviourOf(2, id))).not.toEqual(ids.map((id) => behaviourOf(1, id)));
});

test('boot times cover their whole range, and the failure rate matches the probability', () => {
  const boots = ids.map((id) => bootMs(settings, id));
  expect(Math.min(...boots)).toBeGreaterThanOrEqual(100);
  expect(Math.min(...boots)).toBeLessThan(105);
  expect(Math.max(...boots)).toBeLessThanOrEqual(200);
  expect(Math.max(...boots)).toBeGreaterThan(195);
  const failed = ids.filter((id) => fails(settings, id)).length / ids.length;
  expect(failed).toBeGreaterThan(0.26);
  expect(failed).toBeLessThan(0.34);
  for (const probability of [0, 1])
    expect(ids.every((id) => fails({ ...settings, failureProbability: probability }, id))).toBe(
      probability === 1,
    );
});

test('CPU utilization is an integer wave between min and max, plus or minus the noise', () => {
  const minute = Array.from({ length: 60 }, (_, second) => cpuAt(settings, 'x', second * 1_000));
  expect(minute.every((percent) => Number.isInteger(percent) && percent >= 5 && percent <= 95)).toBe(true);
  expect(Math.max(...minute) - Math.min(...minute)).toBeGreaterThan(70);
  const noisy = { ...settings, cpu: { min: 0, max: 100, periodMs: 60_000, noise: 100 } };
  const all = ids.map((id) => cpuAt(noisy, id, 12_345));
  expect([Math.min(...all), Math.max(...all)]).toEqual([0, 100]);
});

test('CPU utilization is constant if min equals max and noise is 0', () => {
  const constant = { ...settings, cpu: { min: 42, max: 42, periodMs: 1, noise: 0 } };
  expect(new Set(ids.map((id, at) => cpuAt(constant, id, at * 999)))).toEqual(new Set([42]));
});
