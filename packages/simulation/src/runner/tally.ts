import type { Violation } from '../scenario/scenario.ts';
import type { SeedOutcome } from './seed.ts';

/** How many of the violating seeds are told of each invariant. */
const TOLD = 5;

export interface ViolatingSeed extends Violation {
  readonly seed: number;
}

export interface Broken {
  /** How many seeds broke it. */
  readonly seeds: number;
  /** The first of them, by number. */
  readonly first: readonly ViolatingSeed[];
}

/** What many seeds of a scenario came to. Plain data: it crosses from thread to thread. */
export interface Tally {
  readonly seeds: number;
  /** Seeds with a violation or more. */
  readonly violating: number;
  /** By invariant. */
  readonly broken: Readonly<Record<string, Broken>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly steps: number;
  readonly virtualMs: number;
  /** Milliseconds of a core that it took. */
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
  // Of one seed only the first of a kind: a broken promise often stays broken at every step that follows.
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
      first: [...one.first, ...other.first].sort((x, y) => x.seed - y.seed).slice(0, TOLD),
    })),
    counts: merged(a.counts, b.counts, (one, other) => one + other),
    steps: a.steps + b.steps,
    virtualMs: a.virtualMs + b.virtualMs,
    cpuMs: a.cpuMs + b.cpuMs,
  };
}

/** The violating seed with the lowest number. */
export function firstViolation({ broken }: Tally): ViolatingSeed | undefined {
  return Object.values(broken)
    .flatMap(({ first }) => first)
    .sort((x, y) => x.seed - y.seed)[0];
}

/** What a scenario says must happen, and never did. */
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
