import { type Logger, messageOf, type World } from '@vmwright/runtime';
import { ReportedError } from '../vcenter/errors.ts';
import type { ActionType } from './slots.ts';

export interface OperationLogOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly log: Logger;
}

/** Log lines of each operation: when vCenter started a task for it, when it succeeded, and when it failed. */
const LINES: Readonly<Record<ActionType, readonly [started: string, succeeded: string, failed: string]>> = {
  clone: ['Cloning machine', 'Cloned machine', 'Cloning a machine failed'],
  powerOn: ['Powering on machine', 'Powered on machine', 'Powering on a machine failed'],
  reconfigure: ['Reconfiguring machine', 'Reconfigured machine', 'Reconfiguring a machine failed'],
  shutDown: ['Powering off machine', 'Asked guest to shut down', 'Shutting down a guest failed'],
  resize: ['Resizing machine', 'Resized machine', 'Resizing a machine failed'],
  remove: ['Removing machine', 'Removed machine', 'Removing a machine failed'],
  lookUp: ['Looking up machine', 'Looked up machine', 'Looking up a machine failed'],
};

/** Logs one operation with its latest vCenter task. */
export class OperationLog {
  readonly #log: Logger;
  readonly #world: Pick<World, 'monotonic'>;
  readonly #lines: readonly [started: string, succeeded: string, failed: string];
  readonly #fields: Readonly<Record<string, string>>;
  /** `debug` for lookups, which change nothing. */
  readonly #level: 'info' | 'debug';
  readonly #startedAt: number;
  #task: string | undefined;

  constructor(
    { world, log }: OperationLogOptions,
    vmgroup: string,
    { type, machine }: { readonly type: ActionType; readonly machine: string },
  ) {
    this.#log = log;
    this.#world = world;
    this.#lines = LINES[type];
    this.#level = type === 'lookUp' ? 'debug' : 'info';
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

  /** @param retryInMs time until the retry; a changed spec leads to an earlier one */
  failed(error: unknown, retryInMs: number): void {
    const isProgressing = error instanceof ReportedError && error.condition.isProgressing === true;
    const fields = { ...this.#ended(), error: messageOf(error), retryInMs: Math.round(retryInMs) };
    this.#log[isProgressing ? 'debug' : 'warn'](fields, this.#lines[2]);
  }

  #ended(): Readonly<Record<string, unknown>> {
    const tookMs = Math.round(this.#world.monotonic() - this.#startedAt);
    return { ...this.#fields, ...(this.#task !== undefined && { task: this.#task }), tookMs };
  }
}
