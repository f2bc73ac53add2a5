import type { ManagedObjectReference, Vim25 } from '../vim25/vim25.generated.ts';

/** What is watched of a task. Not its progress: that changes a hundred times, and each would wake us. */
export const TASK_PROPERTIES = ['info.state', 'info.error', 'info.result'] as const;

/** What is known of a task so far. */
export interface TaskState {
  readonly state?: string;
  readonly error?: Vim25['LocalizedMethodFault'];
  readonly result?: unknown;
}

export function withChanges(state: TaskState, { changeSet }: Vim25['ObjectUpdate']): TaskState {
  let next = state;
  for (const { name, val } of changeSet ?? []) {
    if (name === 'info.state' && typeof val === 'string') next = { ...next, state: val };
    else if (name === 'info.result') next = { ...next, result: val };
    else if (name === 'info.error' && isFault(val)) next = { ...next, error: val };
  }
  return next;
}

/** How it reads in an error. */
export function taskName({ value }: ManagedObjectReference, what: string | undefined): string {
  return what === undefined ? `the task ${value}` : `${what} (${value})`;
}

function isFault(value: unknown): value is Vim25['LocalizedMethodFault'] {
  return typeof value === 'object' && value !== null && 'fault' in value;
}
