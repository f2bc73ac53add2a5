import { describe, expect, test } from 'vitest';
import type { Violation } from '../../scenario/scenario.ts';
import { Choices } from '../../world/choices.ts';
import { Simulation, seeded } from '../../world/simulation.ts';
import { machines } from './scenario.ts';
import { type Variant, variantNamed } from './variant.ts';

/** Returns the first violation within the given number of seeds. */
async function firstViolation(variant: Variant, seeds: number): Promise<Violation | undefined> {
  for (let seed = 1; seed <= seeds; seed++) {
    const [violation] = await machines(variant).run(seeded(seed));
    if (violation !== undefined) return violation;
  }
  return undefined;
}

describe('a controller of machines in a remote backend under faults', () => {
  test.each([
    ['create-then-write', 20, /leaked|at most one/],
    ['look-up-first', 60, /leaked|at most one/],
    ['token', 300, /leaked|no writes when idle/],
    ['token-and-intent', 400, /leaked/],
    ['gc-objects-first', 600, /no wanted machine is deleted/],
  ] as const)(
    'variant %s violates an invariant within %i seeds',
    async (name, seeds, invariant) => {
      expect((await firstViolation(variantNamed(name), seeds))?.invariant).toMatch(invariant);
    },
    120_000,
  );

  test('running a seed twice, or replaying its recorded choices, gives the same run', async () => {
    const scenario = machines(variantNamed('sound'));
    for (let seed = 1; seed <= 20; seed++) {
      const choices = Choices.seeded(seed, true);
      const first = new Simulation({ choices });
      await scenario.run(first);
      const again = seeded(seed, { story: true });
      await scenario.run(again);
      const replayed = new Simulation({ choices: Choices.replayed(choices.tape) });
      await scenario.run(replayed);
      const trace = [first.trace.hash, first.trace.length, first.schedule.steps];
      expect([again.trace.hash, again.trace.length, again.schedule.steps], `seed ${seed}`).toEqual(trace);
      expect([replayed.trace.hash, replayed.trace.length, replayed.schedule.steps]).toEqual(trace);
    }
  });
});
