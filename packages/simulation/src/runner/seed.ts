import type { Scenario, Violation } from '../scenario/scenario.ts';
import { Choices } from '../world/choices.ts';
import { InvariantError } from '../world/invariant-error.ts';
import { Simulation } from '../world/simulation.ts';
import type { StoryLine } from '../world/trace.ts';
import { UncaughtErrors } from '../world/uncaught-errors.ts';

/** Invariants that every scenario checks in addition to its own. */
export const NOTHING_THROWN = 'no uncaught errors';
export const ENDS = 'every run ends';

export interface Bounds {
  /** Maximum virtual time of a run in milliseconds. */
  readonly virtualMs: number;
  /** Maximum number of events of a run. This limit is needed because virtual time can stand still. */
  readonly steps: number;
}

/** Default limits. A run has about 1,000 events, and rarely more than 5,000. */
const DEFAULT_BOUNDS: Bounds = { virtualMs: 7 * 24 * 3_600_000, steps: 100_000 };

export interface SeedOptions {
  /** Records a readable trace. @default false */
  readonly story?: boolean;
  /** Records the tape: the random choices of the run, which `runTape` replays. @default false */
  readonly tape?: boolean;
  readonly bounds?: Partial<Bounds>;
  /** Called after each event, so that a watchdog can see progress. */
  readonly onEvent?: (() => void) | undefined;
}

/** Result of one run. */
export interface Outcome {
  /** Hash of the trace. Two runs with the same choices and the same code have the same hash. */
  readonly hash: string;
  readonly violations: readonly Violation[];
  readonly counts: Readonly<Record<string, number>>;
  readonly steps: number;
  readonly virtualMs: number;
  /** Number of lines of the trace. */
  readonly lines: number;
  /** The trace, if it was recorded. */
  readonly story: readonly StoryLine[];
  readonly tape: readonly number[];
}

export interface SeedOutcome extends Outcome {
  readonly seed: number;
}

/**
 * Runs one seed of a scenario.
 *
 * Guarantees: never rejects. An error that the simulated code or the scenario throws or leaves unhandled is a
 * violation. A run that does not end is a violation, too.
 * Assumptions: a thread runs one seed at a time, because uncaught errors are reported per thread. If a run loops
 * without yielding, or waits for something outside the simulated world, only another thread can stop it, as `runSeeds`
 * does.
 */
export async function runSeed(
  scenario: Scenario,
  seed: number,
  options: SeedOptions = {},
): Promise<SeedOutcome> {
  return { seed, ...(await run(scenario, Choices.seeded(seed, options.tape), options)) };
}

/**
 * Replays a tape (the recorded choices of a run). After the end of the tape, every choice is 0, which means no fault.
 */
export function runTape(
  scenario: Scenario,
  tape: readonly number[],
  options: SeedOptions = {},
): Promise<Outcome> {
  return run(scenario, Choices.replayed(tape, options.tape), options);
}

async function run(
  scenario: Scenario,
  choices: Choices,
  { story = false, bounds = {}, onEvent }: SeedOptions,
): Promise<Outcome> {
  const simulation = new Simulation({ choices, story });
  const { schedule, trace } = simulation;
  const { virtualMs, steps } = { ...DEFAULT_BOUNDS, ...bounds };
  const checkBounds = () => {
    if (schedule.now > virtualMs)
      throw new Endless(`the run did not end within ${virtualMs / 1_000} s of virtual time`);
    if (schedule.steps > steps) throw new Endless(`the run did not end within ${steps} events`);
  };
  schedule.check(checkBounds);
  if (onEvent !== undefined) schedule.check(onEvent);
  const violations: Violation[] = [];
  const report = (error: unknown) => void violations.push(violationOf(error, schedule.now, story));
  {
    using _ = new UncaughtErrors(report); // for errors outside `Schedule.run`, which handles its own errors
    try {
      violations.push(...(await scenario.run(simulation)));
      checkBounds();
    } catch (error) {
      report(error);
    }
    await new Promise((resolve) => setImmediate(resolve)); // lets unhandled rejections surface in this run
  }
  return {
    hash: trace.hash,
    violations,
    counts: Object.fromEntries(simulation.counts),
    steps: schedule.steps,
    virtualMs: schedule.now,
    lines: trace.length,
    story: trace.story,
    tape: choices.tape,
  };
}

class Endless extends Error {}

function violationOf(error: unknown, atMs: number, story: boolean): Violation {
  if (error instanceof InvariantError) return { invariant: error.invariant, atMs, detail: error.message };
  if (error instanceof Endless) return { invariant: ENDS, atMs, detail: error.message };
  const what = error instanceof Error ? ((story ? error.stack : undefined) ?? String(error)) : String(error);
  return { invariant: NOTHING_THROWN, atMs, detail: `uncaught ${what}` };
}
