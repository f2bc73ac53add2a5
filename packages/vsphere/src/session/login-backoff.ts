import type { Clock } from '@vmwright/core';
import type { FaultError } from '../faults.ts';
import type { Credentials } from './credentials.ts';

const INITIAL_MS = 30_000;
const MAX_MS = 600_000;

/**
 * Delays logins with credentials that vCenter rejected: repeated attempts would lock the account, and people may use
 * the same account. The delay doubles with each rejection, up to ten minutes. Changed credentials are tried
 * immediately.
 */
export class LoginBackoff {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #last:
    | (Credentials & { readonly error: FaultError; readonly until: number; readonly delayMs: number })
    | undefined;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** @throws FaultError of the last rejection, if vCenter rejected these credentials and the delay is not over */
  assertAllowed(credentials: Credentials): void {
    if (this.#isSame(credentials) && this.#last && this.#clock.monotonic() < this.#last.until)
      throw this.#last.error;
  }

  rejected(credentials: Credentials, error: FaultError): void {
    const last = this.#isSame(credentials) ? this.#last : undefined;
    const delayMs = last === undefined ? INITIAL_MS : Math.min(last.delayMs * 2, MAX_MS);
    this.#last = { ...credentials, error, delayMs, until: this.#clock.monotonic() + delayMs };
  }

  accepted(): void {
    this.#last = undefined;
  }

  #isSame({ username, password }: Credentials): boolean {
    return this.#last?.username === username && this.#last.password === password;
  }
}
