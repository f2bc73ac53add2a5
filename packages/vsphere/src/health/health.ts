import {
  ConnectionError,
  StoppedError,
  UnavailableError,
  VcenterChangedError,
  type VsphereError,
} from '../errors.ts';
import { FaultError } from '../faults.ts';

export interface HealthListener {
  /** Called when vCenter responded to a call in a session. */
  answered(): void;
  /** Called when vCenter did not respond to a call, or a login failed. */
  failed(error: unknown): void;
}

/** Reports the outcome of calls to its listeners, as far as it concerns the vCenter and not the single call. */
export class Health {
  readonly #listeners = new Set<HealthListener>();

  listen(listener: HealthListener): void {
    this.#listeners.add(listener);
  }

  answered(): void {
    for (const listener of this.#listeners) listener.answered();
  }

  /** Reports a failed login. */
  loginFailed(error: unknown): void {
    if (error instanceof StoppedError) return;
    for (const listener of this.#listeners) listener.failed(error);
  }

  /** Reports a failed call in a session. A fault shows that vCenter responds, except one for an ended session. */
  callFailed(error: unknown): void {
    if (error instanceof FaultError) {
      if (error.code !== 'NOT_AUTHENTICATED') this.answered();
    } else if (error instanceof ConnectionError || error instanceof UnavailableError)
      for (const listener of this.#listeners) listener.failed(error);
  }
}

/** Whether an error concerns the whole vCenter: unreachable, unavailable, replaced by another one, or the login is rejected. */
export function isOutage(error: unknown): error is VsphereError {
  if (error instanceof FaultError) return error.code === 'INVALID_LOGIN';
  return (
    error instanceof ConnectionError ||
    error instanceof UnavailableError ||
    error instanceof VcenterChangedError
  );
}
