import { NOTHING, sum, type Tally } from './tally.ts';
import { WorkerPool, type WorkerPoolOptions } from './worker-pool.ts';

/**
 * Target duration of one task of a thread in real milliseconds, short enough for frequent progress updates.
 */
const TASK_MS = 200;
const LARGEST_TASK = 1_000;

export interface Progress {
  readonly seeds: number;
  readonly violating: number;
  readonly elapsedMs: number;
  /** Completed part of the whole search, from 0 to 1. */
  readonly part: number;
}

export interface SeedsOptions extends WorkerPoolOptions {
  /** @default 1 */
  readonly from?: number;
  /** Number of seeds. @default unlimited, until `minutes` have passed */
  readonly count?: number;
  /** Real time limit in minutes. @default unlimited, until `count` seeds have run */
  readonly minutes?: number;
  /**
   * Stops at the first violating seed. The result does not depend on the number of threads. @default false
   */
  readonly stopAtFirst?: boolean;
  /** Stops early and returns the partial result. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** Existing pool to use; `workers`, `registry`, `preload` and `hangTimeoutMs` are then ignored. */
  readonly pool?: WorkerPool;
}

export interface SeedsResult extends Tally {
  readonly scenario: string;
  readonly from: number;
  /** Real time of the whole search in milliseconds. */
  readonly elapsedMs: number;
  readonly workers: number;
}

/**
 * Runs many seeds of a scenario on all cores.
 *
 * Flow: the threads receive the seeds in order, several at a time.
 * Guarantees: runs all seeds from `from` on without a gap. Apart from durations, the tally depends only on `from` and
 * `count`.
 * Errors: rejects if the scenario does not exist or a thread fails to start. A run that fails or hangs is a violation,
 * not an error.
 */
export async function runSeeds(scenario: string, options: SeedsOptions): Promise<SeedsResult> {
  const { from = 1, count, minutes, stopAtFirst = false, signal, onProgress } = options;
  if (count === undefined && minutes === undefined) throw new Error('either count or minutes is required');
  const endMs = minutes === undefined ? undefined : minutes * 60_000;
  await using stack = new AsyncDisposableStack();
  const pool = options.pool ?? stack.use(new WorkerPool(options));
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
      const done = await pool.run(task);
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
  await Promise.all(Array.from({ length: pool.size }, lane));
  return { scenario, from, ...tally, elapsedMs: elapsedMs(), workers: pool.size };
}
