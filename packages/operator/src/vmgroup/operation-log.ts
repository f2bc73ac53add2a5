import { keyOf, type Logger, messageOf, type World } from '@vmwright/runtime';
import { type Act, type AuditedObject, audit } from '../audit.ts';
import { ReportedError } from '../vcenter/errors.ts';
import type { ActionType } from './slots.ts';

export interface OperationLogOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly log: Logger;
}

/** The operation that is logged. */
export interface LoggedOperation {
  readonly type: ActionType;
  readonly object: AuditedObject;
  /** Instance UUID of the machine, which is known before the machine exists. */
  readonly machineId: string;
  /** Name of the machine. */
  readonly machine: string;
  readonly reason: string;
}

/** Messages of a failed operation. */
const FAILED: Readonly<Record<ActionType, string>> = {
  clone: 'Cloning a machine failed',
  powerOn: 'Powering on a machine failed',
  reconfigure: 'Reconfiguring a machine failed',
  shutDown: 'Shutting down a guest failed',
  resize: 'Resizing a machine failed',
  remove: 'Removing a machine failed',
  lookUp: 'Looking up a machine failed',
};

/** Logs one operation: an audit line for each change that vCenter accepts, and a line when the operation ends. */
export class OperationLog {
  readonly #log: Logger;
  readonly #world: Pick<World, 'monotonic'>;
  readonly #operation: LoggedOperation;
  readonly #startedAt: number;
  #task: string | undefined;

  constructor({ world, log }: OperationLogOptions, operation: LoggedOperation) {
    this.#log = log;
    this.#world = world;
    this.#operation = operation;
    this.#startedAt = world.monotonic();
  }

  /** @param act undefined for a task that an earlier process started and has already logged */
  acted(task: string | undefined, act: Act | undefined): void {
    this.#task = task ?? this.#task;
    if (act === undefined) return;
    const { object, machineId: machine, machine: machineName, reason } = this.#operation;
    audit(this.#log, object, { act, resource: 'VirtualMachine', machine, machineName, reason, task });
  }

  succeeded(): void {
    this.#log.debug(this.#ended(), 'Operation succeeded');
  }

  /** @param retryInMs time until the retry; a changed spec leads to an earlier retry */
  failed(error: unknown, retryInMs: number): void {
    const isProgressing = error instanceof ReportedError && error.condition.isProgressing === true;
    const fields = { ...this.#ended(), error: messageOf(error), retryInMs: Math.round(retryInMs) };
    this.#log[isProgressing ? 'debug' : 'warn'](fields, FAILED[this.#operation.type]);
  }

  #ended(): Readonly<Record<string, unknown>> {
    const { type, object, machineId, machine: machineName } = this.#operation;
    const { kind, metadata } = object;
    const tookMs = Math.round(this.#world.monotonic() - this.#startedAt);
    const named = { kind, object: keyOf(metadata), machine: machineId, machineName };
    return { operation: type, ...named, task: this.#task, tookMs };
  }
}
