import type { Tally } from './tally.ts';

/** Modules that a thread loads. */
export interface Loaded {
  /** URL of the module that exports the scenarios. */
  readonly registry: string;
  /** URLs of modules to import first. */
  readonly before: readonly string[];
}

/** Start parameters of a thread. */
export interface Given extends Loaded {
  /** Shared counters: index of the running seed in its task, and number of events. */
  readonly at: SharedArrayBuffer;
}

/** A range of seeds of a scenario for one thread. */
export interface Task {
  readonly scenario: string;
  readonly from: number;
  readonly count: number;
  /** Stop at the first violating seed. */
  readonly stopAtFirst: boolean;
}

/** Message from a thread. */
export type Told = { readonly ready: true } | { readonly tally: Tally } | { readonly error: string };

/** Result of a task whose thread ended while it ran this seed. */
export interface Lost {
  readonly lostAt: number;
  readonly why: string;
}
