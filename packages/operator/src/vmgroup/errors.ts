import { type ConditionError, ReportedError } from '../vcenter/errors.ts';
import type { Observed, Slot } from './slots.ts';

/** Thrown when the configured vCenter is not the one that holds the group's machines. */
export class OtherVcenterError extends ReportedError {
  constructor(name: string, vcenterId: string) {
    super({
      reason: 'VcenterChanged',
      message: `vCenter '${name}' is not the vCenter that holds the group's machines (${vcenterId}); set the address of '${name}' back, or delete the group with the annotation vmwright.dev/deletion-policy=Orphan`,
    });
  }
}

/** Thrown when a machine of the group is outside the group's folder. The status lists all such machines together. */
export class MovedError extends ReportedError {
  readonly machine: string;

  constructor(machine: string) {
    super(movedError([machine]));
    this.machine = machine;
  }
}

/** Thrown when people turned a machine of the group into a template. */
export class TurnedIntoTemplateError extends ReportedError {
  constructor(machine: string) {
    super(templateError([machine]));
  }
}

/** Thrown when changing the size of a powered-off machine failed. The machine was powered on again. */
export class ResizeRejectedError extends Error {
  readonly code = 'RESIZE_REJECTED';
  /** Whether a retry may succeed. */
  readonly retryable: boolean;

  constructor(cause: unknown, options: { readonly retryable: boolean }) {
    super('vCenter rejected the new size of a machine', { cause });
    this.name = 'ResizeRejectedError';
    this.retryable = options.retryable;
  }
}

/** Thrown when the group of an operation is gone, or the leadership term in which the operation started has ended. */
export class OperationCancelledError extends Error {
  readonly code = 'OPERATION_CANCELLED';

  constructor() {
    super('the operation was cancelled: its group is gone, or its leadership term has ended');
    this.name = 'OperationCancelledError';
  }
}

/** Maximum number of machine names in a message. */
const MAX_NAMES = 100;

/**
 * Returns the error about the machines that people took over, in the order of their slots. If people moved machines,
 * the error names only these. Otherwise, it names the machines that people turned into templates.
 */
export function takenOverError(slots: readonly Slot[], { movedAway }: Observed): ConditionError | undefined {
  const moved = slots.flatMap(({ replica, machine }) => {
    if (machine !== undefined) return machine.isInFolder ? [] : machine.name;
    return movedAway.get(replica.slot) ?? [];
  });
  if (moved.length > 0) return movedError(moved);
  const templates = slots.flatMap(({ machine }) => (machine?.isTemplate ? machine.name : []));
  return templates.length > 0 ? templateError(templates) : undefined;
}

function movedError(names: readonly string[]): ConditionError {
  const isOne = names.length === 1;
  return {
    reason: 'Moved',
    message: `${listed(names)} ${isOne ? 'is' : 'are'} no longer in the group's folder; move ${isOne ? 'it' : 'them'} back, or delete ${isOne ? 'it' : 'them'}`,
  };
}

function templateError(names: readonly string[]): ConditionError {
  const isOne = names.length === 1;
  return {
    reason: 'IsTemplate',
    message: `${listed(names)} ${isOne ? 'was turned into a template' : 'were turned into templates'}; convert ${isOne ? 'it' : 'them'} back to ${isOne ? 'a virtual machine' : 'virtual machines'}, or delete ${isOne ? 'it' : 'them'}`,
  };
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES).map((name) => `'${name}'`);
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  return `${names.length === 1 ? 'machine' : 'machines'} ${shown.join(', ')}${more}`;
}
