import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../mutants/install.ts';
import { mutate } from '../mutants/mutant.ts';
import { runSeed, runTape } from '../runner/seed.ts';
import { VMGROUP_MUTANTS } from './mutants.ts';
import { vmgroup } from './scenario.ts';

describe('the operator with vCenter under faults', () => {
  test('running a seed twice, or replaying its recorded choices, gives the same run', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const { tape, hash, steps } = await runSeed(vmgroup, seed, { tape: true });
      expect(await runSeed(vmgroup, seed, { story: true }), `seed ${seed}`).toMatchObject({ hash, steps });
      expect(await runTape(vmgroup, tape), `the tape of seed ${seed}`).toMatchObject({ hash, steps });
    }
  });

  test('every mutant changes the file that it names', () => {
    expect(VMGROUP_MUTANTS.length).toBeGreaterThanOrEqual(8);
    for (const mutant of VMGROUP_MUTANTS) {
      const source = readFileSync(new URL(mutant.file, ROOT), 'utf8');
      expect(mutate(source, mutant), mutant.name).not.toBe(source);
    }
  });
});
