import type { Clock } from '@vmwright/core';
import type { FaultError } from '../faults.ts';
import type { Credentials } from './credentials.ts';

const FIRST_MS = 30_000;
const LONGEST_MS = 600_000;

/**
 * Remembers that vCenter has refused a password: asking with the same one again and again locks the account, for
 * people too. A changed one is tried at once.
 */
export class Refusals {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #last:
    | (Credentials & { readonly error: FaultError; readonly until: number; readonly delayMs: number })
    | undefined;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** @throws FaultError that of the last time, while it is too early to ask again */
  check(credentials: Credentials): void {
    if (this.#isSame(credentials) && this.#last && this.#clock.monotonic() < this.#last.until)
      throw this.#last.error;
  }

  refused(credentials: Credentials, error: FaultError): void {
    const last = this.#isSame(credentials) ? this.#last : undefined;
    const delayMs = last === undefined ? FIRST_MS : Math.min(last.delayMs * 2, LONGEST_MS);
    this.#last = { ...credentials, error, delayMs, until: this.#clock.monotonic() + delayMs };
  }

  accepted(): void {
    this.#last = undefined;
  }

  #isSame({ username, password }: Credentials): boolean {
    return this.#last?.username === username && this.#last.password === password;
  }
}
