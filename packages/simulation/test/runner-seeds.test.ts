import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  MANY_SEEDS,
  problems,
  regressionSeeds,
  runRegressionSeeds,
  runSeeds,
  scenarioNamed,
  WorkerPool,
} from '@vmwright/simulation';
import { budget, temporaryFolder } from '@vmwright/testbed';
import { afterAll, describe, expect, test } from 'vitest';
import * as registry from '../src/runner/registry.ts';
import { regressionLines } from '../src/runner/report.ts';
import * as own from './runner-scenarios.ts';

describe('regression seeds', () => {
  test('regression seeds violate no invariant', { timeout: 300_000 }, async () => {
    const outcomes = await runRegressionSeeds(regressionSeeds(), registry);
    expect(regressionLines(outcomes.filter(({ violations }) => violations.length > 0))).toEqual([]);
  });

  test('the report names the bug that each seed found, and the replay command of a violating seed', async () => {
    const why = 'a tenth that was lost';
    const outcomes = await runRegressionSeeds(
      Array.from({ length: 40 }, (_, seed) => ({ scenario: seed === 0 ? 'calm' : 'tenth', seed, why })),
      own,
    );
    const [calm, ...tenths] = regressionLines(outcomes);
    expect(calm).toBe('regression seed 0 of calm passed (the bug that it found: a tenth that was lost)');
    expect(tenths.find((line) => line.includes('violates'))).toMatch(
      /^regression seed (\d+) of tenth violates "nine in ten": it is the tenth \(the bug that it found: a tenth that was lost\)\. Replay it with: make simulate SCENARIO=tenth SEED=\1$/,
    );
  });

  test('a regression seed of an unknown scenario and a malformed seeds file are rejected', async () => {
    const file = join(await temporaryFolder('kept'), 'seeds.json');
    const keep = (kept: unknown) => writeFileSync(file, JSON.stringify(kept));
    keep([{ scenario: 'gone', seed: 3, why: 'x' }]);
    await expect(runRegressionSeeds(regressionSeeds(file), own)).rejects.toThrow(
      'scenario "gone" does not exist; available: calm,',
    );
    for (const wrong of [{}, [{ scenario: 'calm', seed: 3 }], [{ scenario: 'calm', seed: '3', why: 'x' }]]) {
      keep(wrong);
      expect(() => regressionSeeds(file)).toThrow('must contain a list of { scenario, seed, why }');
    }
  });
});

/**
 * Number of seeds per scenario, at least `MANY_SEEDS` in total. Scenarios that find many mutants have the most seeds.
 */
const SHARES: Readonly<Record<string, number>> = {
  greeter: 200,
  runtime: 900,
  sharding: 400,
  'machines-sound': 900,
  vm: budget(1_000, 20_000),
  vmgroup: budget(1_000, 20_000),
  mirror: budget(500, 20_000),
  'mirror-sharding': budget(250, 20_000),
  virtualmachine: budget(400, 20_000),
  gpuinfo: budget(1_000, 20_000),
};

describe('many seeds', () => {
  const pool = new WorkerPool();
  afterAll(() => pool[Symbol.asyncDispose]());

  test('SHARES lists every scenario without known violations, and its seeds add up to at least MANY_SEEDS', () => {
    expect(Object.keys(SHARES).sort()).toEqual(registry.scenarios.map(({ name }) => name).sort());
    const sum = Object.values(SHARES).reduce((all, count) => all + count);
    expect(sum).toBeGreaterThanOrEqual(MANY_SEEDS);
  });

  test.for(Object.entries(SHARES))(
    '%s: no violation in %i seeds, and every required event occurs',
    { timeout: budget(600_000, 6_000_000) },
    async ([name, count]) => {
      const scenario = scenarioNamed(name, registry);
      // Every required event must occur, because a fault that never occurs is not tested. `make simulate` checks this
      // only with 2,000 seeds or more.
      const result = await runSeeds(name, { count, pool });
      expect(problems(scenario, result, count)).toEqual([]);
    },
  );
});
