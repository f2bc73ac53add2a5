import { expect, test } from 'vitest';
import type { Candidate } from './candidate.ts';
import { simulated, simulationChangesAt } from './simulated.ts';

const NOW = Date.parse('2026-01-05T08:00:00.000Z');

const HOUR = 3_600_000;
const NAMES = Array.from({ length: 400 }, (_, index) => `node-${index}`);
const node = (name: string): Candidate => ({
  name,
  host: name,
  labels: {},
  blocker: undefined,
  cpuUsage: 1,
  memoryUsage: 1,
  maintenance: [],
  gpus: { pool: 'real', models: ['A100'] },
  resource: 'nvidia.com/gpu',
});
const of = (name: string, seed = 'seed', now = NOW) => simulated(node(name), seed, now);

test('the same seed and node give the same simulated facts, and another seed gives other facts', () => {
  expect(NAMES.map((name) => of(name))).toEqual(NAMES.map((name) => of(name)));
  expect(NAMES.map((name) => of(name))).not.toEqual(NAMES.map((name) => of(name, 'other')));
});

test('about half of the nodes get one simulated GPU', () => {
  const withGpu = NAMES.filter((name) => of(name).pool !== undefined);
  expect(withGpu.length).toBeGreaterThan(150);
  expect(withGpu.length).toBeLessThan(250);
  for (const name of NAMES) {
    const { candidate, pool } = of(name);
    expect(pool?.id).toBe(candidate.gpus?.pool);
    expect([undefined, 1]).toContain(pool?.total);
    expect(candidate.resource).toBeUndefined();
  }
});

test('at every time of the day, 300 to 400 hours are left until the simulated maintenance', () => {
  for (const name of NAMES)
    for (const now of [NOW, NOW + 15 * HOUR, NOW + 16 * HOUR - 1, NOW + 16 * HOUR]) {
      const [maintenance] = of(name, 'seed', now).candidate.maintenance;
      const hours = ((maintenance?.startsAt ?? 0) - now) / HOUR;
      expect(hours).toBeGreaterThanOrEqual(300);
      expect(hours).toBeLessThanOrEqual(400);
      expect(maintenance?.source).toBe('simulation');
    }
});

test('the start of the simulated maintenance changes at midnight (UTC) only', () => {
  const midnight = simulationChangesAt(NOW);
  expect(new Date(midnight).toISOString()).toBe('2026-01-06T00:00:00.000Z');
  expect(of('a', 'seed', midnight - 1)).toEqual(of('a'));
  expect(of('a', 'seed', midnight)).not.toEqual(of('a'));
  expect(simulationChangesAt(midnight)).toBe(midnight + 24 * HOUR);
});
