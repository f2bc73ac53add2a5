import type { Scenario, Violation } from '../scenario/scenario.ts';
import { formatStory, type StoryLine } from '../world/trace.ts';
import { duration, grouped } from './numbers.ts';
import { readable } from './readable.ts';
import type { RegressionOutcome } from './regression-seeds.ts';
import type { Outcome } from './seed.ts';
import type { SeedsResult } from './seeds.ts';
import { firstViolation, neverHappened, type Tally } from './tally.ts';

/** Minimum number of seeds for reporting that an event never happened. With fewer seeds, that may be chance. */
export const MANY_SEEDS = 2_000;

export function replayCommand(scenario: string, seed: number): string {
  return `make simulate SCENARIO=${scenario} SEED=${seed}`;
}

/**
 * Returns a message for each problem of a tally. The result is empty if there is none. Failing tests show these
 * messages.
 * @param many number of seeds from which on an event of `mustHappen` that never happened is a problem
 */
export function problems(
  { name, mustHappen }: Scenario,
  tally: Tally,
  many: number = MANY_SEEDS,
): readonly string[] {
  const first = firstViolation(tally);
  const violated =
    first === undefined
      ? []
      : [
          `${name}: ${grouped(tally.violating)} of ${grouped(tally.seeds)} seeds violate an invariant, first ${first.seed} ` +
            `("${first.invariant}": ${first.detail}). Replay it with: ${replayCommand(name, first.seed)}`,
        ];
  if (tally.seeds < many) return violated;
  const never = neverHappened(tally, mustHappen).map(
    (what) =>
      `${name}: "${what}" never happened in ${grouped(tally.seeds)} seeds, so the scenario does not test it.`,
  );
  return [...violated, ...never];
}

/** Formats the result of many seeds of a scenario. */
export function summary({ name, mustHappen }: Scenario, result: SeedsResult): string {
  const { seeds, from, elapsedMs, cpuMs, virtualMs, steps, broken, counts, workers } = result;
  const perSecond = (ms: number) => `${grouped((seeds / Math.max(ms, 1)) * 1_000)}/s`;
  const happened = new Map(Object.entries(counts));
  for (const what of mustHappen) if (!happened.has(what)) happened.set(what, 0);
  return [
    `${name}: ${grouped(seeds)} seeds from ${from} in ${duration(elapsedMs)}, ${perSecond(elapsedMs)} on ${workers} threads, ` +
      `${perSecond(cpuMs)} a core; ${duration(virtualMs)} of virtual time, ${grouped(steps)} events`,
    '',
    ...[...happened]
      .sort(([, a], [, b]) => b - a)
      .map(([what, count]) => `${grouped(count).padStart(14)}  ${what}${never(what, count)}`),
    '',
    ...Object.entries(broken)
      .sort(([, a], [, b]) => b.seeds - a.seeds)
      .flatMap(([invariant, { seeds: count, first }]) => [
        `${grouped(count).padStart(14)}  seeds violate "${invariant}", first ${first.map(({ seed }) => seed).join(', ')}`,
        `${' '.repeat(16)}${first[0]?.detail ?? ''}`,
      ]),
    Object.keys(broken).length === 0 ? 'no violations' : '',
  ].join('\n');

  function never(what: string, count: number): string {
    if (count > 0 || !mustHappen.includes(what)) return '';
    return seeds < MANY_SEEDS ? ' (too few seeds to judge)' : '   ← must happen, but never did';
  }
}

/** Formats the trace of one run up to its first violation, followed by the violations. */
export function formatRun(title: string, { story, violations, steps, virtualMs, hash }: Outcome): string {
  return [
    `${title}: ${grouped(steps)} events in ${duration(virtualMs)} of virtual time, trace ${hash}`,
    '',
    formatStory(untilViolated(story, violations).map((line) => ({ ...line, what: readable(line.what) }))),
    '',
    ...violations.map(
      ({ invariant, atMs, detail }) =>
        `${(atMs / 1_000).toFixed(3)} s: "${invariant}" is violated: ${detail}`,
    ),
    violations.length === 0 ? 'no violations' : '',
  ].join('\n');
}

/** Formats the results of the regression seeds, one line each. */
export function regressionLines(outcomes: readonly RegressionOutcome[]): readonly string[] {
  return outcomes.map(({ scenario, seed, why, violations: [violation] }) =>
    violation === undefined
      ? `regression seed ${seed} of ${scenario} passed (the bug that it found: ${why})`
      : `regression seed ${seed} of ${scenario} violates "${violation.invariant}": ${violation.detail} ` +
        `(the bug that it found: ${why}). Replay it with: ${replayCommand(scenario, seed)}`,
  );
}

function untilViolated(story: readonly StoryLine[], violations: readonly Violation[]): readonly StoryLine[] {
  const end = Math.min(...violations.map(({ atMs }) => atMs));
  return story.filter(({ at }) => at <= end);
}
