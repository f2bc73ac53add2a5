import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '@vmwright/core';
import type { Part } from '../process/part.ts';

/** A part as far as its supervision goes. */
export type SupervisedPart = Pick<Part, 'name' | 'log' | 'exited' | 'start' | 'stop' | 'logTail'>;

export interface SupervisorOptions {
  readonly parts: readonly SupervisedPart[];
  readonly say: (line: string) => void;
  /** Ends the supervision. */
  readonly signal: AbortSignal;
  /** Before the first restart of a part that ended by itself; doubles with each that follows. @default 1_000 */
  readonly backoffMs?: number;
}

const LONGEST_BACKOFF_MS = 30_000;
/** A part that ran for this long has recovered: its next back-off is the first one again. */
const RECOVERED_MS = 60_000;

const LOG_LINES = 5;
const LOG_COLUMNS = 160;

/**
 * Restarts parts of `make up` that end, as a kubelet restarts containers. virt-controller, for one, ends itself when the
 * API server is away for some seconds and relies on being restarted.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #states: ReadonlyMap<string, State>;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#states = new Map(options.parts.map((part) => [part.name, new State(part)]));
    for (const state of this.#states.values()) void this.#supervise(state);
  }

  /** Stops the part in order, where it runs, and starts it. Resolves when it serves. */
  async restart(name: string): Promise<void> {
    const state = this.#state(name);
    const started = state.request('run');
    await state.part.stop();
    await started;
  }

  /** Stops the part in order. It stays down until `restart`. */
  async stop(name: string): Promise<void> {
    const state = this.#state(name);
    void state.request('stay down');
    await state.part.stop();
  }

  #state(name: string): State {
    const state = this.#states.get(name);
    if (state !== undefined) return state;
    throw new Error(`there is no part "${name}"; the parts are ${[...this.#states.keys()].join(', ')}`);
  }

  async #supervise(state: State): Promise<void> {
    const { say, signal, backoffMs = 1_000 } = this.#options;
    const { part } = state;
    let failures = 0;
    while (!signal.aborted) {
      const began = performance.now();
      const exit = await part.exited();
      if (signal.aborted) return;
      if (state.requested === undefined) {
        failures = performance.now() - began > RECOVERED_MS ? 1 : failures + 1;
        const waitMs = Math.min(backoffMs * 2 ** (failures - 1), LONGEST_BACKOFF_MS);
        const how = exit?.signal ?? `exit code ${exit?.code}`;
        say(`${part.name} ended (${how}), restarting it in ${waitMs / 1000} s. The end of ${part.log}:`);
        for (const line of (await part.logTail(LOG_LINES)).split('\n')) say(`  ${shortened(line)}`);
        await state.untilRequested(sleep(waitMs, undefined, { signal }));
      } else failures = 0;
      if (state.requested === 'stay down')
        say(`${part.name} is stopped. To start it: make restart PART=${part.name}`);
      while (state.requested === 'stay down' && !signal.aborted) await state.untilRequested(abortOf(signal));
      if (!signal.aborted) await this.#start(state);
    }
  }

  async #start(state: State): Promise<void> {
    const { say, signal } = this.#options;
    try {
      await state.part.start();
      state.settle();
      say(`${state.part.name} is up again`);
    } catch (error) {
      state.settle(error);
      const [what = ''] = messageOf(error).split('\n'); // the rest is its log, which follows with its end
      if (!signal.aborted) say(what);
    }
  }
}

class State {
  readonly part: SupervisedPart;
  requested: 'run' | 'stay down' | undefined;
  #change = Promise.withResolvers<void>();
  #started = Promise.withResolvers<void>();

  constructor(part: SupervisedPart) {
    this.part = part;
    this.#started.promise.catch(() => undefined);
  }

  /** @returns settles with the next start of the part */
  request(what: 'run' | 'stay down'): Promise<void> {
    this.requested = what;
    this.#change.resolve();
    this.#change = Promise.withResolvers();
    return this.#started.promise;
  }

  /** Waits for `end`, or for the next request. */
  async untilRequested(end: Promise<unknown>): Promise<void> {
    await Promise.race([end.catch(() => undefined), this.#change.promise]);
  }

  settle(error?: unknown): void {
    this.requested = undefined;
    if (error === undefined) this.#started.resolve();
    else this.#started.reject(error);
    this.#started = Promise.withResolvers();
    this.#started.promise.catch(() => undefined); // a start without a request has no one to report to
  }
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

function shortened(line: string): string {
  return line.length <= LOG_COLUMNS ? line : `${line.slice(0, LOG_COLUMNS)}…`;
}
