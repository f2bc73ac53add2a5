import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Crew,
  complaints,
  keptSeeds,
  MANY_SEEDS,
  runKept,
  runSeeds,
  scenarioNamed,
} from '@vmwright/simulation';
import { temporaryFolder } from '@vmwright/testbed';
import { afterAll, describe, expect, test } from 'vitest';
import * as registry from '../src/runner/registry.ts';
import { keptLines } from '../src/runner/report.ts';
import * as own from './runner-scenarios.ts';

describe('kept seeds', () => {
  test('the bugs that kept seeds once found stay fixed', { timeout: 300_000 }, async () => {
    const outcomes = await runKept(keptSeeds(), registry);
    expect(keptLines(outcomes.filter(({ violations }) => violations.length > 0))).toEqual([]);
  });

  test('are reported with the bug they once found, and a violating one with its replay command', async () => {
    const why = 'a tenth that was lost';
    const outcomes = await runKept(
      Array.from({ length: 40 }, (_, seed) => ({ scenario: seed === 0 ? 'calm' : 'tenth', seed, why })),
      own,
    );
    const [calm, ...tenths] = keptLines(outcomes);
    expect(calm).toBe('kept seed 0 of calm holds (it once found: a tenth that was lost)');
    expect(tenths.find((line) => line.includes('violates'))).toMatch(
      /^kept seed (\d+) of tenth violates "nine in ten": it is the tenth \(it once found: a tenth that was lost\)\. Replay it with: make simulate SCENARIO=tenth SEED=\1$/,
    );
  });

  test('a kept seed of an unknown scenario and a malformed file are rejected', async () => {
    const file = join(await temporaryFolder('kept'), 'seeds.json');
    const keep = (kept: unknown) => writeFileSync(file, JSON.stringify(kept));
    keep([{ scenario: 'gone', seed: 3, why: 'x' }]);
    await expect(runKept(keptSeeds(file), own)).rejects.toThrow(
      'no scenario is called gone; there are: calm,',
    );
    for (const wrong of [{}, [{ scenario: 'calm', seed: 3 }], [{ scenario: 'calm', seed: '3', why: 'x' }]]) {
      keep(wrong);
      expect(() => keptSeeds(file)).toThrow('is to be a list of { scenario, seed, why }');
    }
  });
});

/** Seeds to run per scenario; scenarios in which mutants are found get the most. At least `MANY_SEEDS` in total. */
const SHARES: Readonly<Record<string, number>> = {
  greeter: 200,
  runtime: 900,
  sharding: 400,
  'machines-sound': 900,
  vm: 2_000,
  vmgroup: 2_000,
};

describe('many seeds', () => {
  const crew = new Crew();
  afterAll(() => crew[Symbol.asyncDispose]());

  test('every sound scenario has a share', () => {
    expect(Object.keys(SHARES).sort()).toEqual(registry.scenarios.map(({ name }) => name).sort());
    const sum = Object.values(SHARES).reduce((all, count) => all + count);
    expect(sum).toBeGreaterThanOrEqual(MANY_SEEDS);
  });

  test.for(Object.entries(SHARES))(
    '%s: no violation in %i seeds, and every required event occurs',
    { timeout: 600_000 },
    async ([name, count]) => {
      const scenario = scenarioNamed(name, registry);
      // A counter at zero means that a fault was never tested. Stricter than `make simulate`, which allows it below
      // 2,000 seeds.
      const result = await runSeeds(name, { count, crew });
      expect(complaints(scenario, result, count)).toEqual([]);
    },
  );
});
