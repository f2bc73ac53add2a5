import { backoffMs, wait } from '@vmwright/core';
import { VsphereError } from '../errors.ts';
import { FaultError, faultOf } from '../faults.ts';
import type { Health } from '../health/health.ts';
import type { ArgsOf, Method, ResultOf } from '../soap/envelope.ts';
import type { SoapClient } from '../soap/soap-client.ts';
import type { ManagedObjectReference } from '../vim25/vim25.generated.ts';
import type { VsphereWorld } from '../world.ts';
import { assertAuthenticated } from './assert-authenticated.ts';
import type { Login } from './login.ts';
import type { Session } from './session.ts';

/** Maximum number of attempts of a read. */
const MAX_ATTEMPTS = 4;
const BACKOFF = { baseMs: 100, maxMs: 2_000 };

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time limit of one response, in milliseconds. @default `timeoutMs` of the client */
  readonly timeoutMs?: number | undefined;
}

export interface ChangeOptions extends CallOptions {
  /**
   * Called right before each send. Throws to prevent the send, for example because this process is no longer the
   * leader.
   */
  readonly assertLeader?: (() => void) | undefined;
  /** Name of the operation in errors: "cloning 'x'". */
  readonly description?: string | undefined;
  /**
   * Whether the request is sent again in a new session if vCenter rejects it because the session has ended. Set it to
   * false for a change that depends on an earlier read. The caller then gets `NOT_AUTHENTICATED` and has to read again.
   * @default true
   */
  readonly resend?: boolean | undefined;
}

interface BoundOptions extends CallOptions {
  /** Whether vCenter holds the request open and may respond late. */
  readonly lasting?: boolean | undefined;
}

/** Sends calls in one session, so that a call can use a view or collector that an earlier call created. */
export interface BoundSession {
  readonly login: Login;
  /** Sends a call that changes nothing in vCenter except the session's own views and collectors. */
  call<M extends Method>(
    method: M,
    self: ManagedObjectReference,
    args: ArgsOf<M>,
    options?: BoundOptions,
  ): Promise<ResultOf<M>>;
}

export interface SessionClientOptions {
  readonly world: Pick<VsphereWorld, 'after' | 'random'>;
  readonly soap: SoapClient;
  readonly session: Session;
  readonly health: Health;
  readonly timeoutMs: number;
}

/** Returns options for clean-up calls, which are sent even when the caller's signal has aborted. */
export function cleanupOptions(): { readonly signal: AbortSignal; readonly timeoutMs: number } {
  // Each call gets a new signal, because listeners on a shared signal would stay in memory.
  return { signal: new AbortController().signal, timeoutMs: 5_000 };
}

/** Sends calls in the current session, logs in again when it has ended, and retries calls that change nothing. */
export class SessionClient {
  readonly #options: SessionClientOptions;

  constructor(options: SessionClientOptions) {
    this.#options = options;
  }

  /**
   * Runs a read in one session. Repeats it if the session has ended, and after retryable errors that are not faults.
   */
  async retryRead<T>(work: (bound: BoundSession) => Promise<T>, { signal }: CallOptions = {}): Promise<T> {
    let hasNewSession = false;
    let hasNewView = false;
    for (let failures = 0; ; ) {
      try {
        return await work(await this.bind(signal));
      } catch (error) {
        signal?.throwIfAborted();
        if (isNotAuthenticated(error) && !hasNewSession) hasNewSession = true;
        else if (isMissingView(error) && !hasNewView) hasNewView = true;
        else if (isTransient(error) && ++failures < MAX_ATTEMPTS) await this.#backOff(failures, signal);
        else throw error;
      }
    }
  }

  /** Sends a call that only reads, and retries it like `retryRead`. */
  read<M extends Method>(
    method: M,
    self: ManagedObjectReference,
    args: ArgsOf<M>,
    options?: CallOptions,
  ): Promise<ResultOf<M>> {
    return this.retryRead((bound) => bound.call(method, self, args, options), options);
  }

  /**
   * Sends a call that changes something.
   *
   * Guarantees: the request is sent a second time only if vCenter rejected the first one because the session had ended.
   * The rejected request had no effect.
   *
   * Errors: after an error with `effectUnknown`, vCenter may have carried out the change.
   */
  async change<M extends Method>(
    method: M,
    self: (login: Login) => ManagedObjectReference,
    args: ArgsOf<M>,
    {
      signal,
      timeoutMs = this.#options.timeoutMs,
      assertLeader,
      description,
      resend = true,
    }: ChangeOptions = {},
  ): Promise<ResultOf<M>> {
    const { soap, session, health } = this.#options;
    for (let hasNewSession = false; ; hasNewSession = true) {
      // A failed login is retried, because the change itself has not been sent yet.
      const { login } = await this.retryRead(async (bound) => bound, { signal });
      const { cookie, version } = login;
      const changes = true;
      const request = {
        method,
        self: self(login),
        args,
        description,
        changes,
        version,
        cookie,
        signal,
        timeoutMs,
        assertLeader,
      };
      try {
        const { result } = await soap.call(request);
        health.answered();
        return result;
      } catch (error) {
        health.callFailed(error);
        if (!isNotAuthenticated(error)) throw error;
        session.invalidate(login);
        if (hasNewSession || !resend) throw error;
      }
    }
  }

  /** Returns the current session. Its calls are sent once, without retries. */
  async bind(signal?: AbortSignal): Promise<BoundSession> {
    const { soap, session, health, timeoutMs: defaultTimeoutMs } = this.#options;
    const login = await session.get(signal);
    const { cookie, version } = login;
    return {
      login,
      call: async (
        method,
        self,
        args,
        { timeoutMs = defaultTimeoutMs, lasting, signal: ownSignal = signal } = {},
      ) => {
        try {
          const request = {
            method,
            self,
            args,
            changes: false,
            version,
            cookie,
            timeoutMs,
            lasting,
            signal: ownSignal,
          };
          const { result } = await soap.call(request);
          assertAuthenticated(method, result);
          health.answered();
          return result;
        } catch (error) {
          health.callFailed(error);
          if (isNotAuthenticated(error)) session.invalidate(login);
          throw error;
        }
      },
    };
  }

  #backOff(failures: number, signal: AbortSignal | undefined): Promise<void> {
    const { world } = this.#options;
    return wait(world, backoffMs(world, failures, BACKOFF), signal);
  }
}

function isNotAuthenticated(error: unknown): boolean {
  return error instanceof FaultError && error.code === 'NOT_AUTHENTICATED';
}

/**
 * Whether the error says that a view does not exist. A view ends with its session. After the end of a session, vCenter
 * may therefore report the missing view before it reports NotAuthenticated.
 */
function isMissingView(error: unknown): boolean {
  return faultOf(error, 'ManagedObjectNotFound')?.obj?.type.endsWith('View') ?? false;
}

/** Whether to repeat a read after this error. False for a fault: vCenter responded, so the caller decides. */
function isTransient(error: unknown): boolean {
  return error instanceof VsphereError && error.retryable && !(error instanceof FaultError);
}
