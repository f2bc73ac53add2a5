import type { Maintenance } from '../candidate.ts';
import type { Node } from '../kinds.ts';
import { BEGUN, NOTHING_PLANNED, type Planned } from './planned.ts';
import { parseRfc3339 } from './times.ts';

/** Conditions of a Node (KEP-5683) that mean that maintenance or a drain has begun. */
const BEGUN_CONDITIONS: ReadonlySet<string> = new Set([
  'MaintenanceInProgress',
  'DrainInProgress',
  'Drained',
]);
const PLANNED = 'MaintenancePlanned';

/** Whether this source reads Node conditions of this type. */
export function isMaintenanceCondition(type: string): boolean {
  return type === PLANNED || BEGUN_CONDITIONS.has(type);
}

/**
 * Reads maintenance from the conditions of a Node. Maintenance in progress and drains have begun at the last transition
 * of their condition. `MaintenancePlanned` has no start time. If an annotation or a label of the same Node announces
 * the time, the condition is ignored and that time counts. Times from other sources, such as the calendar, do not
 * replace the condition, because they may belong to other maintenance. Without an announced time, the maintenance may
 * begin at any moment, so it counts as begun: a job of 100 hours must not be started on a node that is about to be
 * taken away.
 * @param announced maintenance that annotations and labels of the Node announce
 */
export function conditionMaintenance({ status }: Node, announced: readonly Maintenance[]): Planned {
  const conditions = status?.conditions ?? [];
  const isTrue = conditions.filter((each) => each.status === 'True' && isMaintenanceCondition(each.type));
  const counted = isTrue.filter(({ type }) => type !== PLANNED || announced.length === 0);
  if (counted.length === 0) return NOTHING_PLANNED;
  return {
    ...NOTHING_PLANNED,
    maintenance: counted.map(({ type, lastTransitionTime = '' }) => ({
      startsAt: type === PLANNED ? BEGUN : (parseRfc3339(lastTransitionTime) ?? BEGUN),
      source: `condition ${type}`,
    })),
  };
}
