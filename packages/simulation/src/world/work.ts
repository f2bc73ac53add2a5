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
 * Reconciles of one object by one process within this time, whatever happens to it. In 150 histories of
 * each scenario no object had more than 40; one that is requeued after a millisecond has 10,000.
 */
const WINDOW_MS = 10_000;
const MOST_RECONCILES = 100;

/** A period of leading, from the start of its controllers on. */
interface Term {
  readonly signal: AbortSignal;
  isOver: boolean;
}

/** The term in which the code that runs at this moment was begun; also of what a reconcile leaves behind. */
const current = new AsyncLocalStorage<Term>();

/**
 * The work of one process: what its controllers and jobs do, and in which of its terms as a leader.
 *
 * A term is told by the start of event sources and not by the fence, which is what is tested.
 */
export class Work {
  readonly #process: string;
  readonly #schedule: Schedule;
  readonly #windows = new Map<string, { since: number; count: number }>();
  #term: Term | undefined;

  constructor(process: string, schedule: Schedule) {
    this.#process = process;
    this.#schedule = schedule;
  }

  /** Sees all controllers and jobs that are added to the manager from now on. */
  observe(manager: Pick<Manager, 'control' | 'job'>): void {
    const control = manager.control.bind(manager);
    const job = manager.job.bind(manager);
    manager.control = (options) => control(this.#seen(options));
    manager.job = (options) => job({ ...options, run: (context) => this.#in(() => options.run(context)) });
  }

  #seen<T extends KubeObject>(options: ControllerOptions<T>): ControllerOptions<T> {
    const { reconcile, finalizer, sources = [], for: kind } = options;
    const seen =
      (work: Reconcile<T>): Reconcile<T> =>
      (object, context) => {
        // One that comes again at the same instant, without end, would keep the run from ending.
        if (!this.#mayBegin(`${kind.kind} ${context.key}`)) return new Promise(() => undefined);
        return this.#in(() => work(object, context));
      };
    const begins: Source = (_, signal) => {
      this.#begin(signal);
      return new Promise((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    };
    return {
      ...options,
      sources: [begins, ...sources],
      reconcile: seen(reconcile),
      ...(finalizer && { finalizer: { ...finalizer, finalize: seen(finalizer.finalize) } }),
    };
  }

  #begin(signal: AbortSignal): void {
    if (this.#term?.signal === signal) return;
    if (this.#term !== undefined) this.#term.isOver = true;
    const term: Term = { signal, isOver: false };
    this.#term = term;
    // One that is asked to stop may go on until its work has ended.
    signal.addEventListener('abort', () => {
      const { reason } = signal;
      term.isOver ||= reason instanceof LeadershipLostError || reason instanceof ShardsLostError;
    });
  }

  #in<R>(work: () => R): R {
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
    if (window.count <= MOST_RECONCILES) return true;
    const detail = `${this.#process} reconciles ${what} ${window.count} times within ${WINDOW_MS / 1_000} s`;
    this.#schedule.fail(new InvariantError(BOUNDED_RECONCILES, detail));
    return false;
  }
}

/** Whether the code that asks was begun in a term of leadership that has ended. */
export function isOfAnEndedTerm(): boolean {
  return current.getStore()?.isOver ?? false;
}
