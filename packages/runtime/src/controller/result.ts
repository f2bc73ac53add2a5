/** What a reconcile asks for when it has succeeded: nothing, or to be called again. */
export type Result = void | Requeue;

export interface Requeue {
  readonly requeueAfterMs: number;
}

/** Success, and: look again after so many milliseconds, even if nothing changes. */
export function requeueAfter(ms: number): Requeue {
  if (!(ms >= 0)) throw new RangeError(`requeueAfter wants milliseconds from 0 on, not ${ms}`);
  return { requeueAfterMs: ms };
}

/** A failure that trying again does not mend: it is counted and told, and the object rests until it changes. */
export class TerminalError extends Error {
  readonly code = 'TERMINAL';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TerminalError';
  }
}
