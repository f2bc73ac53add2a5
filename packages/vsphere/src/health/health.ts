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
  /** Called when a call got no usable response from vCenter, or a login failed. */
  failed(error: unknown): void;
}

/**
 * Reports to its listeners after each call whether vCenter can be used. Ignores errors that concern only the call
 * itself.
 */
export class Health {
  readonly #listeners = new Set<HealthListener>();

  listen(listener: HealthListener): void {
    this.#listeners.add(listener);
  }

  answered(): void {
    for (const listener of this.#listeners) listener.answered();
  }

  /** Reports a failed login as an outage, unless the client was stopped. */
  loginFailed(error: unknown): void {
    if (error instanceof StoppedError) return;
    for (const listener of this.#listeners) listener.failed(error);
  }

  /** Reports a failed call in a session. A fault counts as a response, unless it says that the session has ended. */
  callFailed(error: unknown): void {
    if (error instanceof FaultError) {
      if (error.code !== 'NOT_AUTHENTICATED') this.answered();
    } else if (error instanceof ConnectionError || error instanceof UnavailableError)
      for (const listener of this.#listeners) listener.failed(error);
  }
}

/**
 * Whether an error means that the vCenter cannot be used: no connection, a response from a proxy or a starting vCenter,
 * another vCenter, or a rejected login.
 */
export function isOutage(error: unknown): error is VsphereError {
  if (error instanceof FaultError) return error.code === 'INVALID_LOGIN';
  return (
    error instanceof ConnectionError ||
    error instanceof UnavailableError ||
    error instanceof VcenterChangedError
  );
}
