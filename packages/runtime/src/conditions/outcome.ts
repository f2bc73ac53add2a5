import type { KubeObject } from '../kind/object.ts';
import { type Condition, removeCondition, setCondition } from './conditions.ts';

/**
 * Result of a reconcile, from which `withOutcome` derives the conditions.
 * - `ready`: the object matches its spec.
 * - `progressing`: the object does not match its spec yet, and the controller continues by itself. This includes
 *   waiting for a backend and deleting the object.
 * - `stalled`: the object stays as it is until a user changes something. It stays `stalled` during automatic retries.
 */
export interface Outcome {
  readonly state: 'ready' | 'progressing' | 'stalled';
  /** Reason of every condition that this outcome sets: one word in CamelCase. */
  readonly reason: string;
  /** Message of every condition: the cause and the remedy. Use the same text on every retry to avoid status writes. */
  readonly message: string;
  /** Whether Ready is Unknown instead of False, because the controller cannot observe the backend. @default false */
  readonly isUnknown?: boolean;
}

/** The part of a status that `withOutcome` sets. */
export interface ReportedStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
}

/**
 * Returns the status with `observedGeneration` and the conditions Ready, Reconciling and Stalled, as kstatus
 * (sigs.k8s.io/cli-utils) expects them. Flux and `kubectl wait` then report success only for a `ready` outcome of the
 * newest spec. By kstatus convention, Reconciling and Stalled are present only while they are True.
 *
 * A new object has no status before its first reconcile. kstatus would read this as success. To prevent this, give the
 * status schema the default `{ observedGeneration: -1 }`. It differs from every generation, so kstatus reports the new
 * object as in progress.
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
