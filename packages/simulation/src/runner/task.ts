import type { Tally } from './tally.ts';

/** What a thread loads. */
export interface Loaded {
  /** The module, by its URL, that has the scenarios. */
  readonly registry: string;
  /** Modules, by their URLs, that come before all else. */
  readonly before: readonly string[];
}

/** What a thread is given when it starts. */
export interface Given extends Loaded {
  /** One number: how many seeds of its task are done. */
  readonly at: SharedArrayBuffer;
}

/** Some seeds of a scenario, for one thread. */
export interface Task {
  readonly scenario: string;
  readonly from: number;
  readonly count: number;
  /** Go no further than the first seed that violates something. */
  readonly stopAtFirst: boolean;
}

/** What a thread says. */
export type Told = { readonly ready: true } | { readonly tally: Tally } | { readonly error: string };

/** A thread is no more, while it ran this seed. */
export interface Lost {
  readonly lostAt: number;
  readonly why: string;
}
