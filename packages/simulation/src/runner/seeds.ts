import { Crew, type CrewOptions } from './crew.ts';
import { NOTHING, sum, type Tally } from './tally.ts';

/** Real milliseconds that one task of a thread is to take: few enough for a lively progress and an end in time. */
const TASK_MS = 200;
const LARGEST_TASK = 1_000;

export interface Progress {
  readonly seeds: number;
  readonly violating: number;
  readonly elapsedMs: number;
  /** How much of it is done, from 0 to 1. */
  readonly part: number;
}

export interface SeedsOptions extends CrewOptions {
  /** @default 1 */
  readonly from?: number;
  /** How many seeds; without, until the time is up. */
  readonly count?: number;
  /** How long, in real time; without, until all are done. */
  readonly minutes?: number;
  /** Goes no further than the first seed that violates something: the same one, however many threads. @default false */
  readonly stopAtFirst?: boolean;
  /** Ends it early, with what was done. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** Threads that are there already; `workers`, `registry`, `before` and `patienceMs` are theirs then. */
  readonly crew?: Crew;
}

export interface SeedsResult extends Tally {
  readonly scenario: string;
  readonly from: number;
  /** Real milliseconds from the first to the last. */
  readonly elapsedMs: number;
  readonly workers: number;
}

/**
 * Many histories of a scenario, over all cores.
 *
 * Flow: seeds are handed to the threads in their order, some at a time.
 * Guarantees: all seeds from `from` on, without a gap; the same tally for the same count, but for the times.
 * Errors: no scenario of this name; a thread that does not come up. What a history does is never one.
 */
export async function runSeeds(scenario: string, options: SeedsOptions): Promise<SeedsResult> {
  const { from = 1, count, minutes, stopAtFirst = false, signal, onProgress } = options;
  if (count === undefined && minutes === undefined)
    throw new Error('say how many seeds to run, or for how many minutes');
  const endMs = minutes === undefined ? undefined : minutes * 60_000;
  await using stack = new AsyncDisposableStack();
  const crew = options.crew ?? stack.use(new Crew(options));
  const started = performance.now();
  const elapsedMs = () => performance.now() - started;
  const end = from + (count ?? Number.POSITIVE_INFINITY);
  let next = from;
  let tally = NOTHING;
  const isOver = () =>
    next >= end ||
    signal?.aborted ||
    (stopAtFirst && tally.violating > 0) ||
    (endMs !== undefined && elapsedMs() >= endMs);
  const lane = async () => {
    let size = 1;
    while (!isOver()) {
      const task = { scenario, from: next, count: Math.min(size, end - next), stopAtFirst };
      next += task.count;
      const done = await crew.run(task);
      tally = sum(tally, done);
      size = Math.ceil(Math.min(LARGEST_TASK, size * 4, (TASK_MS * done.seeds) / done.cpuMs));
      const { seeds, violating } = tally;
      const part = Math.max(
        count === undefined ? 0 : seeds / count,
        endMs === undefined ? 0 : Math.min(1, elapsedMs() / endMs),
      );
      onProgress?.({ seeds, violating, elapsedMs: elapsedMs(), part });
    }
  };
  await Promise.all(Array.from({ length: crew.size }, lane));
  return { scenario, from, ...tally, elapsedMs: elapsedMs(), workers: crew.size };
}
