import type { KubeObject } from '@vmwright/runtime';
import { type AnyCondition, conditionAt, conditionsOf, numberAt } from './fields.ts';

/**
 * State of an object of vmwright, from its conditions:
 * - `Deleting`: it has a deletionTimestamp
 * - `Paused`: the operator changes nothing
 * - `Unseen`: the operator has not processed the newest spec
 * - `Ready`, `Progressing`, `Stalled`: as kstatus defines them
 * - `Unknown`: the operator cannot observe the backend
 */
export const STATES = ['Ready', 'Progressing', 'Stalled', 'Unknown', 'Unseen', 'Paused', 'Deleting'] as const;

export type State = (typeof STATES)[number];

export function stateOf(object: KubeObject): State {
  const { deletionTimestamp, generation } = object.metadata;
  if (deletionTimestamp !== undefined) return 'Deleting';
  if (conditionAt(object, 'Paused')?.status === 'True') return 'Paused';
  const observed = numberAt(object, 'status', 'observedGeneration');
  if (generation !== undefined && observed !== generation) return 'Unseen';
  const ready = conditionAt(object, 'Ready')?.status;
  if (ready === 'True') return 'Ready';
  if (conditionAt(object, 'Stalled')?.status === 'True') return 'Stalled';
  return ready === 'Unknown' ? 'Unknown' : ready === undefined ? 'Unseen' : 'Progressing';
}

/** Condition types for which the status True means a problem. For all other types, the status False means a problem. */
const ABNORMAL: ReadonlySet<string> = new Set([
  ...['Reconciling', 'Stalled', 'Paused', 'VmLost', 'ImageDiffers', 'UserNamesChanged', 'RestartRequired'],
  ...['DeletionBlocked', 'Degraded', 'Simulated', 'Failure'],
]);

function isProblem({ type, status }: AnyCondition): boolean {
  return status === 'Unknown' || (status === 'True') === ABNORMAL.has(type);
}

/**
 * Returns the conditions that report a problem, without conditions that repeat reason and message of an earlier
 * condition.
 */
export function problemsOf(object: KubeObject): readonly AnyCondition[] {
  const problems = conditionsOf(object).filter(isProblem);
  return problems.filter(
    ({ reason, message }, index) =>
      problems.findIndex((each) => each.reason === reason && each.message === message) === index,
  );
}
