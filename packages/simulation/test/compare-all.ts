import { expect } from 'vitest';

export interface Comparing<D> {
  readonly sequences: number;
  readonly atATime: number;
  /** Runs the sequence of a seed on both sides. @param tell of each outcome @returns where they part */
  readonly compare: (seed: number, tell: (outcome: string) => void) => Promise<D | undefined>;
  /** What must be among the outcomes, or it was not worth comparing. */
  readonly expected: readonly string[];
  /** How often each, at the least. */
  readonly least: number;
}

/** More of them tell nothing new. */
const MOST_DIFFERENCES = 3;

/** Asserts that a model answers as the real part does, whatever it is asked. */
export async function compareAll<D>(comparing: Comparing<D>): Promise<void> {
  const { sequences, atATime, compare, expected, least } = comparing;
  const outcomes = new Map<string, number>();
  const differences: D[] = [];
  const tell = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  let next = 0;
  const work = async () => {
    while (next < sequences && differences.length < MOST_DIFFERENCES) {
      next += 1;
      const difference = await compare(next, tell);
      if (difference !== undefined) differences.push(difference);
    }
  };
  await Promise.all(Array.from({ length: atATime }, work));
  expect(differences).toEqual([]);
  for (const outcome of expected) expect(outcomes.get(outcome) ?? 0, outcome).toBeGreaterThan(least);
}
