import { backoffMs, wait } from '@vmwright/core';
import { VsphereError } from '../errors.ts';
import { FaultError, faultOf } from '../faults.ts';
import type { Health } from '../health/health.ts';
import type { Login } from '../session/login.ts';
import type { Session } from '../session/session.ts';
import type { ArgsOf, Method, ResultOf } from '../soap/envelope.ts';
import type { Wire } from '../soap/wire.ts';
import type { ManagedObjectReference } from '../vim25/vim25.generated.ts';
import type { VsphereWorld } from '../world.ts';
import { refuseIfSignedOut } from './signed-out.ts';

const TRIES = 4;
const DELAYS = { baseMs: 100, maxMs: 2_000 };

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** For one answer. @default that of the client */
  readonly timeoutMs?: number | undefined;
}

export interface ChangeOptions extends CallOptions {
  /** Called right before each sending; throws when it must not be: no more leader, say. */
  readonly assertLeader?: (() => void) | undefined;
  /** What is done, as errors say it: "cloning 'x'". */
  readonly what?: string | undefined;
  /**
   * Whether it is sent again in a new session when vCenter has refused it for want of one. False for a change that rests
   * on something that was read before: the caller gets `NOT_AUTHENTICATED`, and reads again. @default true
   */
  readonly resend?: boolean | undefined;
}

interface BoundOptions extends CallOptions {
  readonly lasting?: boolean | undefined;
}

/** Calls within one session: what one makes, the next can use. */
export interface Bound {
  readonly login: Login;
  /** A call that changes nothing but the session itself, with its views and collectors. */
  call<M extends Method>(
    method: M,
    self: ManagedObjectReference,
    args: ArgsOf<M>,
    options?: BoundOptions,
  ): Promise<ResultOf<M>>;
}

export interface CallsOptions {
  readonly world: Pick<VsphereWorld, 'after' | 'random'>;
  readonly wire: Wire;
  readonly session: Session;
  readonly health: Health;
  readonly timeoutMs: number;
}

/** For what is cleared away at the end, also by who has given up. */
export function regardless(): { readonly signal: AbortSignal; readonly timeoutMs: number } {
  // One of its own: who listens to one that all share stays in memory for as long as that.
  return { signal: new AbortController().signal, timeoutMs: 5_000 };
}

/** Calls in the session, with a new one where it has ended, and again where that does no harm. */
export class Calls {
  readonly #options: CallsOptions;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  /** Reads, in one session; from the start again in a new one, and after answers that did not come. */
  async reading<T>(work: (bound: Bound) => Promise<T>, { signal }: CallOptions = {}): Promise<T> {
    let isRenewed = false;
    let isRemade = false;
    for (let failures = 0; ; ) {
      try {
        return await work(await this.bind(signal));
      } catch (error) {
        signal?.throwIfAborted();
        if (isSignedOut(error) && !isRenewed) isRenewed = true;
        else if (lacksView(error) && !isRemade) isRemade = true;
        else if (isPassing(error) && ++failures < TRIES) await this.#pause(failures, signal);
        else throw error;
      }
    }
  }

  /** Reads by one call. */
  read<M extends Method>(
    method: M,
    self: ManagedObjectReference,
    args: ArgsOf<M>,
    options?: CallOptions,
  ): Promise<ResultOf<M>> {
    return this.reading((bound) => bound.call(method, self, args, options), options);
  }

  /**
   * Changes something.
   *
   * Guarantees: sent a second time only when vCenter has said of the first that there was no session for it, and so has
   * not carried it out.
   *
   * Errors: one that has `effectUnknown` says that it may have been carried out.
   */
  async change<M extends Method>(
    method: M,
    self: (login: Login) => ManagedObjectReference,
    args: ArgsOf<M>,
    { signal, timeoutMs = this.#options.timeoutMs, assertLeader, what, resend = true }: ChangeOptions = {},
  ): Promise<ResultOf<M>> {
    const { wire, session, health } = this.#options;
    for (let isRenewed = false; ; isRenewed = true) {
      // Whatever fails in the login is repeated there: nothing of this call has been sent.
      const { login } = await this.reading(async (bound) => bound, { signal });
      const { cookie, version } = login;
      const changes = true;
      const sent = {
        method,
        self: self(login),
        args,
        what,
        changes,
        version,
        cookie,
        signal,
        timeoutMs,
        assertLeader,
      };
      try {
        const { result } = await wire.call(sent);
        health.answered();
        return result;
      } catch (error) {
        health.callFailed(error);
        if (!isSignedOut(error)) throw error;
        session.lost(login);
        if (isRenewed || !resend) throw error;
      }
    }
  }

  /** Calls in the session as it is now, each sent once. */
  async bind(signal?: AbortSignal): Promise<Bound> {
    const { wire, session, health, timeoutMs: usual } = this.#options;
    const login = await session.get(signal);
    const { cookie, version } = login;
    return {
      login,
      call: async (method, self, args, { timeoutMs = usual, lasting, signal: own = signal } = {}) => {
        try {
          const sent = {
            method,
            self,
            args,
            changes: false,
            version,
            cookie,
            timeoutMs,
            lasting,
            signal: own,
          };
          const { result } = await wire.call(sent);
          refuseIfSignedOut(method, result);
          health.answered();
          return result;
        } catch (error) {
          health.callFailed(error);
          if (isSignedOut(error)) session.lost(login);
          throw error;
        }
      },
    };
  }

  #pause(failures: number, signal: AbortSignal | undefined): Promise<void> {
    const { world } = this.#options;
    return wait(world, backoffMs(world, failures, DELAYS), signal);
  }
}

function isSignedOut(error: unknown): boolean {
  return error instanceof FaultError && error.code === 'NOT_AUTHENTICATED';
}

/** Views end with their session: of one that ended between two calls, the view may be missed first. */
function lacksView(error: unknown): boolean {
  return faultOf(error, 'ManagedObjectNotFound')?.obj?.type.endsWith('View') ?? false;
}

/** Whether a reading may do better the next time. Faults are left to the caller. */
function isPassing(error: unknown): boolean {
  return error instanceof VsphereError && error.retryable && !(error instanceof FaultError);
}
