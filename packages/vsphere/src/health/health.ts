import {
  ConnectionError,
  StoppedError,
  UnavailableError,
  VcenterChangedError,
  type VsphereError,
} from '../errors.ts';
import { FaultError } from '../faults.ts';

export interface HealthListener {
  /** vCenter has answered a call in a session. */
  answered(): void;
  /** A call had no answer of vCenter, or a login failed; `error` says why. */
  failed(error: unknown): void;
}

/** Tells how calls to a vCenter end, as far as that says something about the vCenter and not about the call. */
export class Health {
  readonly #listeners = new Set<HealthListener>();

  listen(listener: HealthListener): void {
    this.#listeners.add(listener);
  }

  answered(): void {
    for (const listener of this.#listeners) listener.answered();
  }

  /** A login has failed, for whatever reason. */
  loginFailed(error: unknown): void {
    if (error instanceof StoppedError) return;
    for (const listener of this.#listeners) listener.failed(error);
  }

  /** A call in a session has failed. A fault is an answer, but for one that says that there is no session. */
  callFailed(error: unknown): void {
    if (error instanceof FaultError) {
      if (error.code !== 'NOT_AUTHENTICATED') this.answered();
    } else if (error instanceof ConnectionError || error instanceof UnavailableError)
      for (const listener of this.#listeners) listener.failed(error);
  }
}

/** Whether an error says that vCenter cannot be used at all: unreachable, out of order, not ours, or it rejects the login. */
export function isOutage(error: unknown): error is VsphereError {
  if (error instanceof FaultError) return error.code === 'INVALID_LOGIN';
  return (
    error instanceof ConnectionError ||
    error instanceof UnavailableError ||
    error instanceof VcenterChangedError
  );
}
