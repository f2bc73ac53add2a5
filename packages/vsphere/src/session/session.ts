import { type Clock, unlessAborted } from '@vmwright/core';
import { StoppedError, VcenterChangedError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import type { Health } from '../health/health.ts';
import type { SoapClient } from '../soap/soap-client.ts';
import type { Credentials } from './credentials.ts';
import { type Login, logIn, logOut, terminateOrphanedSessions } from './login.ts';
import { LoginBackoff } from './login-backoff.ts';

/** Time limit of a logout. Short, because the server may be unreachable. */
const LOGOUT_TIMEOUT_MS = 5_000;

export interface SessionOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly soap: SoapClient;
  /** User agent that no other client uses. It identifies the sessions of this client in vCenter. */
  readonly userAgent: string;
  readonly credentials: () => Credentials | Promise<Credentials>;
  readonly health: Health;
  readonly timeoutMs: number;
  /** API version. @default the newest that client and server support */
  readonly version?: string | undefined;
}

/**
 * The session of a client with its vCenter.
 *
 * Flow: the first `get` logs in. Concurrent calls share that login. After `invalidate`, the next `get` logs in again,
 * with the credentials of that moment.
 *
 * Guarantees: the client uses one session at a time. An invalidated session is logged out before the next login. If no
 * response to a login arrived, the session of that login is terminated after the next successful login.
 *
 * All sessions belong to the vCenter of the first login. While the address leads to another vCenter, every login fails
 * with VcenterChangedError, so no call reaches the wrong vCenter.
 *
 * Errors: all callers that share a login get its error. Rejected credentials are tried again only after a delay.
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #loginBackoff: LoginBackoff;
  readonly #stopped = new AbortController();
  #login: Login | undefined;
  #pending: Promise<Login> | undefined;
  /** Session that vCenter reported as ended; logged out before the next login. */
  #invalidated: Login | undefined;
  /** `about.instanceUuid` of the first login. */
  #identity: string | undefined;
  /**
   * Whether a login got no valid response. vCenter may then hold a session that the client does not know. Never reset,
   * because vCenter may carry out such a login at any later time.
   */
  #mayHaveOrphans = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#loginBackoff = new LoginBackoff(options.clock);
  }

  /** Returns the session; logs in when there is none. */
  async get(signal?: AbortSignal): Promise<Login> {
    if (this.#stopped.signal.aborted) throw this.#stopped.signal.reason;
    if (this.#login !== undefined) return this.#login;
    // The login ignores the caller's signal, because other callers wait for it too.
    this.#pending ??= this.#connect()
      .catch((error: unknown) => {
        this.#options.health.loginFailed(error);
        throw error;
      })
      .finally(() => {
        this.#pending = undefined;
      });
    return unlessAborted(this.#pending, signal);
  }

  /** Drops a session that vCenter reported as ended. Does nothing when it was replaced already. */
  invalidate(login: Login): void {
    if (this.#login !== login) return;
    this.#login = undefined;
    this.#invalidated = login;
  }

  /** Logs out. Later calls of `get` fail with StoppedError. */
  async stop(): Promise<void> {
    this.#stopped.abort(new StoppedError('the vSphere client was stopped'));
    // A login in progress is not aborted, because vCenter would keep the session of an aborted login.
    await this.#pending?.catch(() => undefined);
    const login = this.#login;
    const { soap, userAgent } = this.#options;
    this.#login = undefined;
    if (login === undefined) return;
    if (this.#mayHaveOrphans) await terminateOrphanedSessions(login, soap, userAgent, LOGOUT_TIMEOUT_MS);
    await logOut(login, soap, LOGOUT_TIMEOUT_MS);
  }

  async #connect(): Promise<Login> {
    const { soap, userAgent, timeoutMs } = this.#options;
    const credentials = await this.#options.credentials();
    this.#loginBackoff.assertAllowed(credentials);
    if (this.#invalidated !== undefined) {
      await logOut(this.#invalidated, soap, LOGOUT_TIMEOUT_MS);
      this.#invalidated = undefined;
    }
    const login = await this.#attempt(credentials);
    if (this.#mayHaveOrphans) await terminateOrphanedSessions(login, soap, userAgent, timeoutMs);
    this.#login = login;
    this.#options.health.answered();
    return login;
  }

  async #attempt(credentials: Credentials): Promise<Login> {
    const { soap, timeoutMs, version } = this.#options;
    try {
      const login = await logIn(credentials, { soap, timeoutMs, version, identity: this.#identity });
      this.#identity ??= login.content.about.instanceUuid;
      this.#loginBackoff.accepted();
      return login;
    } catch (error) {
      if (error instanceof FaultError) {
        if (error.code === 'INVALID_LOGIN') this.#loginBackoff.rejected(credentials, error);
      } else if (!(error instanceof VcenterChangedError)) this.#mayHaveOrphans = true;
      throw error;
    }
  }
}
