import { setTimeout as sleep } from 'node:timers/promises';
import { exponentialMs, messageOf } from '@vmwright/core';
import type { Part } from '../process/part.ts';

/** The members of a part that the supervisor uses. */
export type SupervisedPart = Pick<Part, 'name' | 'log' | 'exited' | 'start' | 'stop' | 'logTail'>;

export interface SupervisorOptions {
  readonly parts: readonly SupervisedPart[];
  readonly print: (line: string) => void;
  /** Ends the supervision when aborted. */
  readonly signal: AbortSignal;
  /** Delay before the first restart of a part that exited by itself; doubles with each further exit. @default 1_000 */
  readonly backoffMs?: number;
}

const MAX_BACKOFF_MS = 30_000;
/** Running time after which the back-off of a part is reset. */
const RECOVERED_MS = 60_000;

const LOG_LINES = 5;
const LOG_COLUMNS = 160;

/**
 * Restarts parts of `make up` that exit, with back-off, as the kubelet restarts containers. For example,
 * virt-controller exits when the API server is unreachable for some seconds, and relies on a restart.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #states: ReadonlyMap<string, State>;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#states = new Map(options.parts.map((part) => [part.name, new State(part)]));
    for (const state of this.#states.values()) void this.#supervise(state);
  }

  /** Stops the part gracefully if it is running, and starts it again. Resolves when the part is ready. */
  async restart(name: string): Promise<void> {
    const state = this.#state(name);
    const started = state.request('running');
    await state.part.stop();
    await started;
  }

  /** Stops the part gracefully. It stays stopped until `restart`. */
  async stop(name: string): Promise<void> {
    const state = this.#state(name);
    void state.request('stopped');
    await state.part.stop();
  }

  #state(name: string): State {
    const state = this.#states.get(name);
    if (state !== undefined) return state;
    throw new Error(`unknown part "${name}"; the parts are ${[...this.#states.keys()].join(', ')}`);
  }

  async #supervise(state: State): Promise<void> {
    const { print, signal, backoffMs = 1_000 } = this.#options;
    const { part } = state;
    let failures = 0;
    while (!signal.aborted) {
      const startedAt = performance.now();
      const exit = await part.exited();
      if (signal.aborted) return;
      if (state.requested === undefined) {
        failures = performance.now() - startedAt > RECOVERED_MS ? 1 : failures + 1;
        const waitMs = exponentialMs(failures, { baseMs: backoffMs, maxMs: MAX_BACKOFF_MS });
        const cause = exit?.signal ?? `exit code ${exit?.code}`;
        print(`${part.name} exited (${cause}), restarting in ${waitMs / 1000} s. Last lines of ${part.log}:`);
        for (const line of (await part.logTail(LOG_LINES)).split('\n')) print(`  ${truncate(line)}`);
        await state.untilRequested(sleep(waitMs, undefined, { signal }));
      } else failures = 0;
      if (state.requested === 'stopped')
        print(`${part.name} is stopped; start it with: make restart PART=${part.name}`);
      while (state.requested === 'stopped' && !signal.aborted) await state.untilRequested(abortOf(signal));
      if (!signal.aborted) await this.#start(state);
    }
  }

  async #start(state: State): Promise<void> {
    const { print, signal } = this.#options;
    try {
      await state.part.start();
      state.settle();
      print(`${state.part.name} is running again`);
    } catch (error) {
      state.settle(error);
      // Only the first line of the message is printed. The other lines are from the log of the part, and `#supervise`
      // prints the end of that log.
      const [summary = ''] = messageOf(error).split('\n');
      if (!signal.aborted) print(summary);
    }
  }
}

/** A part, its requested state, and a promise that settles with the result of its next start. */
class State {
  readonly part: SupervisedPart;
  requested: 'running' | 'stopped' | undefined;
  #change = Promise.withResolvers<void>();
  #started = Promise.withResolvers<void>();

  constructor(part: SupervisedPart) {
    this.part = part;
    this.#started.promise.catch(() => undefined);
  }

  /** @returns a promise that settles when the next start of the part has succeeded or failed */
  request(target: 'running' | 'stopped'): Promise<void> {
    this.requested = target;
    this.#change.resolve();
    this.#change = Promise.withResolvers();
    return this.#started.promise;
  }

  /** Waits for `end` or for the next request, whichever comes first. */
  async untilRequested(end: Promise<unknown>): Promise<void> {
    await Promise.race([end.catch(() => undefined), this.#change.promise]);
  }

  settle(error?: unknown): void {
    this.requested = undefined;
    if (error === undefined) this.#started.resolve();
    else this.#started.reject(error);
    this.#started = Promise.withResolvers();
    // Avoids an unhandled rejection: if the supervisor restarts a part by itself, no caller awaits the promise.
    this.#started.promise.catch(() => undefined);
  }
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

function truncate(line: string): string {
  return line.length <= LOG_COLUMNS ? line : `${line.slice(0, LOG_COLUMNS)}…`;
}
