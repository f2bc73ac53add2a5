import { type Logger, messageOf, type World } from '@vmwright/runtime';
import type { Action } from './slots.ts';
import { GroupError } from './trouble.ts';

export interface OperationLogOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly log: Logger;
}

/** Log lines of each operation: when vCenter began with it, when it succeeded, and when it failed. */
const LINES: Readonly<Record<Action['do'], readonly [began: string, succeeded: string, failed: string]>> = {
  clone: ['Cloning machine', 'Cloned machine', 'Cloning a machine failed'],
  powerOn: ['Powering on machine', 'Powered on machine', 'Powering on a machine failed'],
  reconfigure: ['Reconfiguring machine', 'Reconfigured machine', 'Reconfiguring a machine failed'],
  shutDown: ['Powering off machine', 'Asked guest to shut down', 'Shutting a guest down failed'],
  resize: ['Resizing machine', 'Resized machine', 'Resizing a machine failed'],
  remove: ['Removing machine', 'Removed machine', 'Removing a machine failed'],
  lookUp: ['Looking machine up', 'Looked machine up', 'Looking a machine up failed'],
};

/** Logs one operation, with the vCenter task that it has come to. */
export class OperationLog {
  readonly #log: Logger;
  readonly #world: Pick<World, 'monotonic'>;
  readonly #lines: readonly [began: string, succeeded: string, failed: string];
  readonly #fields: Readonly<Record<string, string>>;
  /** Lookups change nothing. */
  readonly #level: 'info' | 'debug';
  readonly #startedAt: number;
  #task: string | undefined;

  constructor(
    { world, log }: OperationLogOptions,
    vmgroup: string,
    { what, machine }: { readonly what: Action['do']; readonly machine: string },
  ) {
    this.#log = log;
    this.#world = world;
    this.#lines = LINES[what];
    this.#level = what === 'lookUp' ? 'debug' : 'info';
    this.#fields = { vmgroup, machine };
    this.#startedAt = world.monotonic();
  }

  started(task: string): void {
    if (this.#task === undefined) this.#log[this.#level]({ ...this.#fields, task }, this.#lines[0]);
    this.#task = task;
  }

  succeeded(): void {
    this.#log[this.#level](this.#ended(), this.#lines[1]);
  }

  /** @param retryInMs until it is retried; earlier where the group changes */
  failed(error: unknown, retryInMs: number): void {
    const isPassing = error instanceof GroupError && error.trouble.isPassing === true;
    const fields = { ...this.#ended(), error: messageOf(error), retryInMs: Math.round(retryInMs) };
    this.#log[isPassing ? 'debug' : 'warn'](fields, this.#lines[2]);
  }

  #ended(): Readonly<Record<string, unknown>> {
    const tookMs = Math.round(this.#world.monotonic() - this.#startedAt);
    return { ...this.#fields, ...(this.#task !== undefined && { task: this.#task }), tookMs };
  }
}
