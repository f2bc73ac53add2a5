import type { Violation } from '../scenario/scenario.ts';
import type { SeedOutcome } from './seed.ts';

/** Maximum number of violating seeds to keep per invariant. */
const MAX_FIRST = 5;

export interface ViolatingSeed extends Violation {
  readonly seed: number;
}

export interface Broken {
  /** Number of seeds that violate the invariant. */
  readonly seeds: number;
  /** The violating seeds with the lowest numbers. */
  readonly first: readonly ViolatingSeed[];
}

/** Summary of many seeds of a scenario. Plain data, since it is sent between threads. */
export interface Tally {
  readonly seeds: number;
  /** Number of seeds with at least one violation. */
  readonly violating: number;
  /** Violated invariants by name. */
  readonly broken: Readonly<Record<string, Broken>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly steps: number;
  readonly virtualMs: number;
  /** CPU time in milliseconds. */
  readonly cpuMs: number;
}

export const NOTHING: Tally = {
  seeds: 0,
  violating: 0,
  broken: {},
  counts: {},
  steps: 0,
  virtualMs: 0,
  cpuMs: 0,
};

export function tallyOf(
  {
    seed,
    violations,
    counts,
    steps,
    virtualMs,
  }: Pick<SeedOutcome, 'seed' | 'violations' | 'counts' | 'steps' | 'virtualMs'>,
  cpuMs: number,
): Tally {
  const broken: Record<string, Broken> = {};
  // Counts only the first violation of an invariant per seed, because the violation often recurs at every following
  // step.
  for (const violation of violations)
    broken[violation.invariant] ??= { seeds: 1, first: [{ ...violation, seed }] };
  return { seeds: 1, violating: violations.length > 0 ? 1 : 0, broken, counts, steps, virtualMs, cpuMs };
}

export function sum(a: Tally, b: Tally): Tally {
  return {
    seeds: a.seeds + b.seeds,
    violating: a.violating + b.violating,
    broken: merged(a.broken, b.broken, (one, other) => ({
      seeds: one.seeds + other.seeds,
      first: [...one.first, ...other.first].sort((x, y) => x.seed - y.seed).slice(0, MAX_FIRST),
    })),
    counts: merged(a.counts, b.counts, (one, other) => one + other),
    steps: a.steps + b.steps,
    virtualMs: a.virtualMs + b.virtualMs,
    cpuMs: a.cpuMs + b.cpuMs,
  };
}

/** Returns the violating seed with the lowest number. */
export function firstViolation({ broken }: Tally): ViolatingSeed | undefined {
  return Object.values(broken)
    .flatMap(({ first }) => first)
    .sort((x, y) => x.seed - y.seed)[0];
}

/** Returns the entries of `mustHappen` that never occurred. */
export function neverHappened({ counts }: Tally, mustHappen: readonly string[]): readonly string[] {
  return mustHappen.filter((what) => (counts[what] ?? 0) === 0);
}

function merged<V>(
  a: Readonly<Record<string, V>>,
  b: Readonly<Record<string, V>>,
  add: (one: V, other: V) => V,
): Record<string, V> {
  const all = { ...a };
  for (const [name, value] of Object.entries(b)) {
    const there = all[name];
    all[name] = there === undefined ? value : add(there, value);
  }
  return all;
}
