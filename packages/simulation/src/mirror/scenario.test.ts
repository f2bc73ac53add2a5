import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../mutants/install.ts';
import { mutate } from '../mutants/mutant.ts';
import { runSeed, runTape } from '../runner/seed.ts';
import { MIRROR_MUTANTS } from './mutants.ts';
import { mirror } from './scenario.ts';

describe('the status mirror under faults', () => {
  test('running a seed twice, or replaying its recorded choices, gives the same run', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const { tape, hash, steps } = await runSeed(mirror, seed, { tape: true });
      expect(await runSeed(mirror, seed, { story: true }), `seed ${seed}`).toMatchObject({ hash, steps });
      expect(await runTape(mirror, tape), `the tape of seed ${seed}`).toMatchObject({ hash, steps });
    }
  });

  test('every mutant changes the file that it names', () => {
    expect(MIRROR_MUTANTS.length).toBeGreaterThanOrEqual(8);
    for (const mutant of MIRROR_MUTANTS) {
      const source = readFileSync(new URL(mutant.file, ROOT), 'utf8');
      expect(mutate(source, mutant), mutant.name).not.toBe(source);
    }
  });
});
