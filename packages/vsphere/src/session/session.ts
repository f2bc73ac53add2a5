import { type Clock, unlessAborted } from '@vmwright/core';
import { StoppedError, VcenterChangedError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import type { Health } from '../health/health.ts';
import type { Wire } from '../soap/wire.ts';
import type { Credentials } from './credentials.ts';
import { endOthers, type Login, logIn, logOut } from './login.ts';
import { Refusals } from './refusals.ts';

/** At the end nobody wants to wait for a server that may be gone. */
const FAREWELL_MS = 5_000;

export interface SessionOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly wire: Wire;
  /** The user agent, which no other process has. */
  readonly agent: string;
  readonly credentials: () => Credentials | Promise<Credentials>;
  readonly health: Health;
  readonly timeoutMs: number;
  /** In place of the agreed version. */
  readonly version?: string | undefined;
}

/**
 * The one session that this process has with a vCenter.
 *
 * Flow: made when first asked for; all who ask meanwhile wait for the same login. Who is told by vCenter that it has
 * ended says so (`lost`), and the next who asks gets a new one, with the credentials of that moment.
 *
 * Guarantees: never two. The one that is said to have ended is logged out before the next login; one that was begun by a
 * login whose answer was lost is ended after it.
 *
 * The vCenter stays the one of the first login: when its address leads to another one, every login fails with
 * VcenterChangedError until the first one is back, so no call that was meant for the one is sent to the other.
 *
 * Errors: those of the login, to all who wait for it. A password that was refused is not tried again for a while.
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #refusals: Refusals;
  readonly #stopped = new AbortController();
  #login: Login | undefined;
  #pending: Promise<Login> | undefined;
  /** Said to have ended. */
  #ended: Login | undefined;
  /** `about.instanceUuid` of the first login. */
  #identity: string | undefined;
  /** For good: a lost login may land any time later. */
  #mayHaveOthers = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#refusals = new Refusals(options.clock);
  }

  async get(signal?: AbortSignal): Promise<Login> {
    if (this.#stopped.signal.aborted) throw this.#stopped.signal.reason;
    if (this.#login !== undefined) return this.#login;
    // Not by the caller's signal: others wait for it too.
    this.#pending ??= this.#begin()
      .catch((error: unknown) => {
        this.#options.health.loginFailed(error);
        throw error;
      })
      .finally(() => {
        this.#pending = undefined;
      });
    return unlessAborted(this.#pending, signal);
  }

  /** What vCenter has said of this one. Of an older one nobody minds any more. */
  lost(login: Login): void {
    if (this.#login !== login) return;
    this.#login = undefined;
    this.#ended = login;
  }

  /** Logs out. Whoever asks from here on is refused. */
  async stop(): Promise<void> {
    this.#stopped.abort(new StoppedError('the vSphere client was stopped'));
    // A login under way is not cut off: it would leave a session that nobody ends.
    await this.#pending?.catch(() => undefined);
    const login = this.#login;
    const { wire, agent } = this.#options;
    this.#login = undefined;
    if (login === undefined) return;
    if (this.#mayHaveOthers) await endOthers(login, wire, agent, FAREWELL_MS);
    await logOut(login, wire, FAREWELL_MS);
  }

  async #begin(): Promise<Login> {
    const { wire, agent, timeoutMs } = this.#options;
    const credentials = await this.#options.credentials();
    this.#refusals.check(credentials);
    if (this.#ended !== undefined) {
      await logOut(this.#ended, wire, FAREWELL_MS);
      this.#ended = undefined;
    }
    const login = await this.#attempt(credentials);
    if (this.#mayHaveOthers) await endOthers(login, wire, agent, timeoutMs);
    this.#login = login;
    this.#options.health.answered();
    return login;
  }

  async #attempt(credentials: Credentials): Promise<Login> {
    const { wire, timeoutMs, version } = this.#options;
    try {
      const login = await logIn(credentials, { wire, timeoutMs, version, identity: this.#identity });
      this.#identity ??= login.content.about.instanceUuid;
      this.#refusals.accepted();
      return login;
    } catch (error) {
      if (error instanceof FaultError) {
        if (error.code === 'INVALID_LOGIN') this.#refusals.refused(credentials, error);
      } else if (!(error instanceof VcenterChangedError)) this.#mayHaveOthers = true;
      throw error;
    }
  }
}
