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
  return (changeSet ?? []).reduce(withChange, state);
}

function withChange(state: TaskState, { name, val }: { readonly name: string; readonly val?: unknown }) {
  if (name === 'info.state' && typeof val === 'string') return { ...state, state: val };
  if (name === 'info.result') return { ...state, result: val };
  return name === 'info.error' && isFault(val) ? { ...state, error: val } : state;
}

/** What a task says when it is asked itself. */
export function stateIn(properties: Readonly<Record<string, unknown>>): TaskState {
  return Object.entries(properties).reduce((state, [name, val]) => withChange(state, { name, val }), {});
}

/** How it reads in an error. */
export function taskName({ value }: ManagedObjectReference, what: string | undefined): string {
  return what === undefined ? `the task ${value}` : `${what} (${value})`;
}

function isFault(value: unknown): value is Vim25['LocalizedMethodFault'] {
  return typeof value === 'object' && value !== null && 'fault' in value;
}
