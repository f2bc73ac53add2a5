import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../planted/plant.ts';
import { plantedIn } from '../planted/planted.ts';
import { runSeed, runTape } from '../runner/seed.ts';
import { VMGROUP_BUGS } from './bugs.ts';
import { vmgroup } from './scenario.ts';

/** Far from those that are run with all scenarios. */
const FROM = 1_000_001;
const SEEDS = 200;

describe('the operator over vCenter in a world where all goes wrong', () => {
  test(`keeps all its promises in ${SEEDS} histories`, { timeout: 300_000 }, async () => {
    for (let seed = FROM; seed < FROM + SEEDS; seed++)
      expect((await runSeed(vmgroup, seed)).violations, `seed ${seed}`).toEqual([]);
  });

  test('has the same history for the same seed, and for its tape', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const { tape, hash, steps } = await runSeed(vmgroup, seed, { tape: true });
      expect(await runSeed(vmgroup, seed, { story: true }), `seed ${seed}`).toMatchObject({ hash, steps });
      expect(await runTape(vmgroup, tape), `the tape of seed ${seed}`).toMatchObject({ hash, steps });
    }
  });

  test('has bugs to be planted that still fit the code', () => {
    expect(VMGROUP_BUGS.length).toBeGreaterThanOrEqual(8);
    for (const bug of VMGROUP_BUGS) {
      const source = readFileSync(new URL(bug.file, ROOT), 'utf8');
      expect(plantedIn(source, bug), bug.name).not.toBe(source);
    }
  });
});
