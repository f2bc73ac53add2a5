import type { Tally } from './tally.ts';

/** Modules that a thread loads. */
export interface WorkerModules {
  /** URL of the module that exports the scenarios. */
  readonly registry: string;
  /** URLs of modules that the thread imports, in order, before the registry. */
  readonly preload: readonly string[];
}

/** Start parameters of a thread. */
export interface WorkerInput extends WorkerModules {
  /** Two shared numbers: the index of the running seed in its task, and the number of events in this thread so far. */
  readonly at: SharedArrayBuffer;
}

/** A range of seeds of a scenario for one thread. */
export interface Task {
  readonly scenario: string;
  readonly from: number;
  readonly count: number;
  /** Whether to stop at the first violating seed. */
  readonly stopAtFirst: boolean;
}

/** Message from a thread. */
export type WorkerMessage = { readonly ready: true } | { readonly tally: Tally } | { readonly error: string };

/** Result of a task if its thread ended during the run of the seed `lostAt`. */
export interface LostWorker {
  readonly lostAt: number;
  readonly why: string;
}
