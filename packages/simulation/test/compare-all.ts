import { expect } from 'vitest';

export interface Comparing<D> {
  /** Number of sequences to compare; sequence n has the seed n. */
  readonly sequences: number;
  /** Number of sequences to run concurrently. */
  readonly concurrency: number;
  /**
   * Runs the sequence of a seed on the model and on the real server. Calls `onOutcome` for each operation, and returns
   * the first difference.
   */
  readonly compare: (seed: number, onOutcome: (outcome: string) => void) => Promise<D | undefined>;
  /** Outcomes that must occur, to show that the sequences cover them. */
  readonly expected: readonly string[];
  /** Each expected outcome must occur more than this number of times. */
  readonly least: number;
}

/** Stops after this many differences; more add no information. */
const MAX_DIFFERENCES = 3;

/** Asserts that a model and the real server give the same responses to random sequences of operations. */
export async function compareAll<D>(comparing: Comparing<D>): Promise<void> {
  const { sequences, concurrency, compare, expected, least } = comparing;
  const outcomes = new Map<string, number>();
  const differences: D[] = [];
  const onOutcome = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  let next = 0;
  const work = async () => {
    while (next < sequences && differences.length < MAX_DIFFERENCES) {
      next += 1;
      const difference = await compare(next, onOutcome);
      if (difference !== undefined) differences.push(difference);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  expect(differences).toEqual([]);
  for (const outcome of expected) expect(outcomes.get(outcome) ?? 0, outcome).toBeGreaterThan(least);
}
