import type { Scenario, Violation } from '../scenario/scenario.ts';
import { Choices } from '../world/choices.ts';
import { Intruders } from '../world/intruders.ts';
import { InvariantError } from '../world/invariant-error.ts';
import { Simulation } from '../world/simulation.ts';
import type { StoryLine } from '../world/trace.ts';

/** Promises that every scenario makes, beside its own. */
export const NOTHING_THROWN = 'no uncaught errors';
export const ENDS = 'every run ends';

export interface Bounds {
  /** Virtual milliseconds, after which a history should long be over. */
  readonly virtualMs: number;
  /** Events, likewise: time may stand still. */
  readonly steps: number;
}

/** A history has about 1,000 events, and rarely more than 5,000. */
const USUAL_BOUNDS: Bounds = { virtualMs: 7 * 24 * 3_600_000, steps: 100_000 };

export interface SeedOptions {
  /** Keep a story that people can read. @default false */
  readonly story?: boolean;
  /** Keep the tape of choices. @default false */
  readonly tape?: boolean;
  readonly bounds?: Partial<Bounds>;
  /** Called after each event, to show from outside that the history goes on. */
  readonly onEvent?: (() => void) | undefined;
}

/** What became of one history. */
export interface Outcome {
  /** Of all that happened, in its order: equal for the same choices and the same code. */
  readonly hash: string;
  readonly violations: readonly Violation[];
  readonly counts: Readonly<Record<string, number>>;
  readonly steps: number;
  readonly virtualMs: number;
  /** How many lines its story has. */
  readonly lines: number;
  /** The story itself, if it was asked for. */
  readonly story: readonly StoryLine[];
  readonly tape: readonly number[];
}

export interface SeedOutcome extends Outcome {
  readonly seed: number;
}

/**
 * One history of a scenario.
 *
 * Guarantees: never rejects; what the simulated code or the scenario throws, leaves rejected, or never comes to the end
 * of is a violation like any other.
 * Assumptions: one at a time in a thread, since uncaught errors are told to a whole thread. Code that loops without
 * giving way, or a scenario that waits for what is not in its world, can be stopped from another thread only: `runSeeds`
 * does.
 */
export async function runSeed(
  scenario: Scenario,
  seed: number,
  options: SeedOptions = {},
): Promise<SeedOutcome> {
  return { seed, ...(await play(scenario, Choices.seeded(seed, options.tape), options)) };
}

/** The history that a tape of choices tells; beyond its end all choices are harmless. */
export function runTape(
  scenario: Scenario,
  tape: readonly number[],
  options: SeedOptions = {},
): Promise<Outcome> {
  return play(scenario, Choices.replayed(tape, options.tape), options);
}

async function play(
  scenario: Scenario,
  choices: Choices,
  { story = false, bounds = {}, onEvent }: SeedOptions,
): Promise<Outcome> {
  const simulation = new Simulation({ choices, story });
  const { schedule, trace } = simulation;
  const { virtualMs, steps } = { ...USUAL_BOUNDS, ...bounds };
  const checkBounds = () => {
    if (schedule.now > virtualMs)
      throw new Endless(`it still went on after ${virtualMs / 1_000} s of virtual time`);
    if (schedule.steps > steps) throw new Endless(`it still went on after ${steps} events`);
  };
  schedule.check(checkBounds);
  if (onEvent !== undefined) schedule.check(onEvent);
  const violations: Violation[] = [];
  const tell = (error: unknown) => void violations.push(violationOf(error, schedule.now, story));
  {
    using _ = new Intruders(tell); // the schedule has its own while it runs; this one is for what lies between
    try {
      violations.push(...(await scenario.run(simulation)));
      checkBounds();
    } catch (error) {
      tell(error);
    }
    await new Promise((resolve) => setImmediate(resolve)); // what was left rejected is told now, not in the next run
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
  return { invariant: NOTHING_THROWN, atMs, detail: `nobody caught ${what}` };
}
