import {
  type BackoffOptions,
  backoffMs,
  type Logger,
  messageOf,
  unlessAborted,
  type World,
  wait,
} from '@vmwright/runtime';
import { type Database, DatabaseError, type Session } from './database.ts';

export interface DatabaseLinkOptions {
  readonly world: World;
  readonly log: Logger;
  readonly database: Database;
  readonly backoff: BackoffOptions;
  /**
   * Prepares a new session before callers get it. If `prepare` rejects, the session is closed and a new one is opened
   * after a delay.
   */
  readonly prepare: (session: Session, signal: AbortSignal) => Promise<void>;
  /** Called when a session has failed or could not be opened. */
  readonly onFailure: (error: DatabaseError) => void;
}

/** Interval of the checks that the session still works. They also run while nothing is written. */
const CHECK_MS = 5_000;

/**
 * Keeps one session with the database open. After a failure, opens a new one with back-off. Logs the start and the end
 * of each outage once.
 */
export class DatabaseLink {
  readonly #options: DatabaseLinkOptions;
  #ready = Promise.withResolvers<Session>();
  #session: Session | undefined;
  #fail: ((error: DatabaseError) => void) | undefined;
  /** Number of failures since `Session.check` last succeeded. */
  #failures = 0;

  constructor(options: DatabaseLinkOptions) {
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#session !== undefined;
  }

  /** Waits for a session for which `prepare` has succeeded. */
  session(signal: AbortSignal): Promise<Session> {
    return unlessAborted(this.#ready.promise, signal);
  }

  /** Returns the open session; undefined while there is none for which `prepare` has succeeded. */
  get current(): Session | undefined {
    return this.#session;
  }

  /** Closes the session because a call failed. Does nothing if the session was already replaced. */
  failed(session: Session, error: DatabaseError): void {
    if (this.#session !== session) return;
    this.#drop();
    this.#fail?.(error);
  }

  /** Keeps a session open until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { world, backoff, onFailure } = this.#options;
    while (!signal.aborted) {
      const error = await this.#runSession(signal);
      if (signal.aborted) return;
      this.#failures += 1;
      onFailure(error);
      this.#report(error);
      await wait(world, backoffMs(world, this.#failures, backoff), signal).catch(() => undefined);
    }
  }

  /** Opens a session and keeps it until it fails. @returns the failure */
  async #runSession(signal: AbortSignal): Promise<DatabaseError> {
    const { database, prepare } = this.#options;
    const failed = Promise.withResolvers<DatabaseError>();
    const ended = new AbortController();
    const end = () => ended.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    // Not `await using`: the number of microtasks that it takes depends on the compiler. The order of events in
    // simulations would then depend on the compiler too.
    let session: Session | undefined;
    try {
      session = await database.open(signal);
      // A statement that the server does not respond to must not delay the shutdown.
      await unlessAborted(prepare(session, signal), signal);
      this.#session = session;
      this.#fail = failed.resolve;
      this.#ready.resolve(session);
      // Not awaited: a check that does not return must not delay the next session. The check ends when the session is
      // closed.
      void this.#check(session, ended.signal).catch((error: unknown) =>
        failed.resolve(toSessionFailure(error)),
      );
      return await unlessAborted(failed.promise, signal);
    } catch (error) {
      return toSessionFailure(error);
    } finally {
      await session?.[Symbol.asyncDispose]();
      ended.abort();
      signal.removeEventListener('abort', end);
      this.#drop();
      this.#fail = undefined;
    }
  }

  /**
   * Checks the session until it fails or the signal aborts. An outage ends with the first successful check, not when a
   * session is opened: with a read-only database, sessions can be opened but fail with their first batch.
   */
  async #check(session: Session, signal: AbortSignal): Promise<never> {
    const { world, log } = this.#options;
    for (;;) {
      await wait(world, CHECK_MS, signal);
      await session.check();
      signal.throwIfAborted();
      if (this.#failures > 0) log.info({}, 'Database is available again');
      this.#failures = 0;
    }
  }

  #drop(): void {
    if (this.#session === undefined) return;
    this.#session = undefined;
    this.#ready = Promise.withResolvers();
  }

  #report(error: DatabaseError): void {
    const { log } = this.#options;
    const fields = { error: error.message, code: error.code };
    if (this.#failures > 1) log.debug(fields, 'Database session failed again, retrying');
    else if (error.code === NOT_DATABASE)
      log.warn(fields, 'Preparing the mirror for a new database session failed, retrying');
    else log.warn(fields, 'Database is unavailable; changes are kept and written after the reconnect');
  }
}

/** Code of a failure that does not come from the database, such as a failed list of VMs. */
const NOT_DATABASE = 'UNKNOWN';

function toSessionFailure(error: unknown): DatabaseError {
  return error instanceof DatabaseError
    ? error
    : new DatabaseError(messageOf(error), NOT_DATABASE, 'session', { cause: error });
}
