import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../mutants/install.ts';
import { mutate } from '../mutants/mutant.ts';
import { runSeed, runTape } from '../runner/seed.ts';
import { GPUINFO_MUTANTS } from './mutants.ts';
import { gpuinfo } from './scenario.ts';

/** First seed, outside the range that the test of all scenarios runs. */
const FROM = 1_000_001;
const SEEDS = 50;

describe('GPU reservations under faults', () => {
  test(`GPU reservations violate no invariant in ${SEEDS} runs`, { timeout: 300_000 }, async () => {
    for (let seed = FROM; seed < FROM + SEEDS; seed++)
      expect((await runSeed(gpuinfo, seed)).violations, `seed ${seed}`).toEqual([]);
  });

  test('running a seed twice, or replaying its recorded choices, gives the same run', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const { tape, hash, steps } = await runSeed(gpuinfo, seed, { tape: true });
      expect(await runSeed(gpuinfo, seed, { story: true }), `seed ${seed}`).toMatchObject({ hash, steps });
      expect(await runTape(gpuinfo, tape), `the tape of seed ${seed}`).toMatchObject({ hash, steps });
    }
  });

  test('every mutant changes the file that it names', () => {
    expect(GPUINFO_MUTANTS.length).toBeGreaterThanOrEqual(12);
    for (const mutant of GPUINFO_MUTANTS) {
      const source = readFileSync(new URL(mutant.file, ROOT), 'utf8');
      expect(mutate(source, mutant), mutant.name).not.toBe(source);
    }
  });
});
