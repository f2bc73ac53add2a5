/** Result of a successful reconcile: nothing, or a request for another reconcile after a delay. */
export type Result = void | Requeue;

/** Asks for another reconcile after a delay; created by `requeueAfter`. */
export interface Requeue {
  readonly requeueAfterMs: number;
}

/** Returns the result of a successful reconcile that must run again after `ms` milliseconds, even without a change. */
export function requeueAfter(ms: number): Requeue {
  if (!(ms >= 0)) throw new RangeError(`requeueAfter needs a non-negative number of milliseconds, not ${ms}`);
  return { requeueAfterMs: ms };
}

/**
 * Error after which an object is not retried. The object is reconciled again only when something enqueues it, such as a
 * change. The error is logged and counted like any other.
 */
export class TerminalError extends Error {
  readonly code = 'TERMINAL';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TerminalError';
  }
}
