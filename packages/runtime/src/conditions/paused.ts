import type { KubeObject } from '../kind/object.ts';
import { removeCondition, setCondition } from './conditions.ts';
import type { ReportedStatus } from './outcome.ts';

/** Type of the condition that marks a paused object: the controller observes the backend and does not change it. */
export const PAUSED_CONDITION = 'Paused';

/**
 * Returns the status with the condition Paused if `paused` is given, and otherwise without it. A paused object keeps
 * its other conditions, which report what the controller observes.
 * @param paused why the object is paused and how to resume it; undefined if it is not paused
 * @param now milliseconds since 1970
 */
export function withPaused<S extends ReportedStatus>(
  { metadata: { generation } }: KubeObject,
  status: S,
  paused: { readonly reason: string; readonly message: string } | undefined,
  now: number,
): S {
  const { conditions } = status;
  if (paused === undefined) {
    if (conditions === undefined) return status;
    return { ...status, conditions: removeCondition(conditions, PAUSED_CONDITION) };
  }
  const { reason, message } = paused;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const condition = { type: PAUSED_CONDITION, status: 'True', reason, message, ...observed } as const;
  return { ...status, conditions: setCondition(conditions, condition, now) };
}
