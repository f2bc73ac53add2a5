import type { KubeObject } from '../kind/object.ts';
import { type Condition, removeCondition, setCondition } from './conditions.ts';

/**
 * How far a reconcile has come, as a controller decides it; `withOutcome` derives the conditions from it.
 * - `ready`: the object is as its spec wants it.
 * - `progressing`: not yet; the controller goes on by itself (also: it waits for a backend, or deletes).
 * - `stalled`: not, and it stays so until a person changes something. Automatic retries do not make it `progressing`.
 */
export interface Outcome {
  readonly state: 'ready' | 'progressing' | 'stalled';
  /** Reason of every condition that this outcome sets: one word in CamelCase. */
  readonly reason: string;
  /** What is so, and what the user can do about it. The same text on every retry, so that nothing is written again. */
  readonly message: string;
  /** Ready is Unknown instead of False: the controller cannot observe the outside. @default false */
  readonly isUnknown?: boolean;
}

/** The part of a status that `withOutcome` sets. */
export interface ReportedStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
}

/**
 * The status with `observedGeneration` and the conditions Ready, Reconciling and Stalled, as kstatus
 * (sigs.k8s.io/cli-utils) reads them: Flux, Argo CD and `kubectl wait` report success only for a `ready` outcome of the
 * newest spec. Reconciling and Stalled are there only while they are True, as the kstatus convention has it.
 *
 * A new object has no status before its first reconcile, which kstatus takes for success. Give the status schema the
 * default `{ observedGeneration: -1 }`, which differs from every generation.
 * @param now milliseconds since 1970
 */
export function withOutcome<S extends ReportedStatus>(
  { metadata: { generation } }: KubeObject,
  status: S,
  outcome: Outcome,
  now: number,
): S {
  const { state, reason, message, isUnknown = false } = outcome;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const set = (conditions: readonly Condition[] | undefined, type: string, value: Condition['status']) =>
    setCondition(conditions, { type, status: value, reason, message, ...observed }, now);
  const ready = state === 'ready' ? 'True' : isUnknown ? 'Unknown' : 'False';
  let conditions = set(status.conditions, 'Ready', ready);
  for (const [type, when] of [
    ['Reconciling', 'progressing'],
    ['Stalled', 'stalled'],
  ] as const)
    conditions = state === when ? set(conditions, type, 'True') : removeCondition(conditions, type);
  return { ...status, ...observed, conditions };
}
