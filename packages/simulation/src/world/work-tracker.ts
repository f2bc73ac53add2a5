import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type ControllerOptions,
  type KubeObject,
  LeadershipLostError,
  type Manager,
  type Reconcile,
  ShardsLostError,
  type Source,
} from '@vmwright/runtime';
import { InvariantError } from './invariant-error.ts';
import type { Schedule } from './schedule.ts';

export const ENDED_TERM = 'no change is sent by work of an ended term';
const BOUNDED_RECONCILES = 'reconciles of an object are bounded';

/**
 * Limit on the reconciles of one object by one process within `WINDOW_MS`. In 150 runs of each scenario, no object
 * exceeded 40 reconciles; an object that is requeued every millisecond reaches 10,000.
 */
const WINDOW_MS = 10_000;
const MAX_RECONCILES = 100;

/** A term of leadership, beginning when the controllers start. */
interface Term {
  readonly signal: AbortSignal;
  isOver: boolean;
}

/**
 * The term in which the calling code was started. It also applies to work that a reconcile left running in the
 * background.
 */
const current = new AsyncLocalStorage<Term>();

/**
 * Tracks the reconciles and jobs of one process and the leadership term in which each was started.
 *
 * A term begins when event sources are started. The fence cannot define the terms, because the fence is under test.
 */
export class WorkTracker {
  readonly #process: string;
  readonly #schedule: Schedule;
  readonly #windows = new Map<string, { since: number; count: number }>();
  #term: Term | undefined;

  constructor(process: string, schedule: Schedule) {
    this.#process = process;
    this.#schedule = schedule;
  }

  /** Wraps all controllers and jobs that are added to the manager from now on. */
  observe(manager: Pick<Manager, 'control' | 'job'>): void {
    const control = manager.control.bind(manager);
    const job = manager.job.bind(manager);
    manager.control = (options) => control(this.#wrap(options));
    manager.job = (options) =>
      job({ ...options, run: (context) => this.#runInTerm(() => options.run(context)) });
  }

  #wrap<T extends KubeObject>(options: ControllerOptions<T>): ControllerOptions<T> {
    const { reconcile, finalizer, sources = [], for: kind } = options;
    const tracked =
      (work: Reconcile<T>): Reconcile<T> =>
      (object, context) => {
        // A reconcile beyond the limit never starts. Otherwise, an endless loop of requeues at one instant would
        // prevent the run from ending.
        if (!this.#mayBegin(`${kind.kind} ${context.key}`)) return new Promise(() => undefined);
        return this.#runInTerm(() => work(object, context));
      };
    const termStart: Source = (_, signal) => {
      this.#begin(signal);
      return new Promise((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    };
    return {
      ...options,
      sources: [termStart, ...sources],
      reconcile: tracked(reconcile),
      ...(finalizer && { finalizer: { ...finalizer, finalize: tracked(finalizer.finalize) } }),
    };
  }

  #begin(signal: AbortSignal): void {
    if (this.#term?.signal === signal) return;
    if (this.#term !== undefined) this.#term.isOver = true;
    const term: Term = { signal, isOver: false };
    this.#term = term;
    // After a normal stop, running work may finish. Only the loss of leadership or shards ends the term.
    signal.addEventListener('abort', () => {
      const { reason } = signal;
      term.isOver ||= reason instanceof LeadershipLostError || reason instanceof ShardsLostError;
    });
  }

  #runInTerm<R>(work: () => R): R {
    return this.#term === undefined ? work() : current.run(this.#term, work);
  }

  #mayBegin(what: string): boolean {
    const { now } = this.#schedule;
    const window = this.#windows.get(what);
    if (window === undefined || now - window.since > WINDOW_MS) {
      this.#windows.set(what, { since: now, count: 1 });
      return true;
    }
    window.count += 1;
    if (window.count <= MAX_RECONCILES) return true;
    const detail = `${this.#process} reconciles ${what} ${window.count} times within ${WINDOW_MS / 1_000} s`;
    this.#schedule.fail(new InvariantError(BOUNDED_RECONCILES, detail));
    return false;
  }
}

/** Whether the calling code was started in a leadership term that has ended. */
export function isInEndedTerm(): boolean {
  return current.getStore()?.isOver ?? false;
}
