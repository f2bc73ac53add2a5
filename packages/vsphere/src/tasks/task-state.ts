import type { ManagedObjectReference, Vim25 } from '../vim25/vim25.generated.ts';

/**
 * Watched properties of a task. `info.progress` is not watched: it changes up to a hundred times per task, and each
 * change would cause a response.
 */
export const TASK_PROPERTIES = ['info.state', 'info.error', 'info.result'] as const;

/** The known properties of a task. */
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

/** Returns the state from the properties of a task. */
export function stateFrom(properties: Readonly<Record<string, unknown>>): TaskState {
  return Object.entries(properties).reduce((state, [name, val]) => withChange(state, { name, val }), {});
}

/** Returns the name of the task for error messages. */
export function taskName({ value }: ManagedObjectReference, description: string | undefined): string {
  return description === undefined ? `task ${value}` : `${description} (${value})`;
}

function isFault(value: unknown): value is Vim25['LocalizedMethodFault'] {
  return typeof value === 'object' && value !== null && 'fault' in value;
}
