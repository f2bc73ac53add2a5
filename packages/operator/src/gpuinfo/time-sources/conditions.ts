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
 * of their condition. `MaintenancePlanned` has no start time:
 * - If an annotation or a label of the same Node announces a time, that time counts and the condition is ignored.
 * - A time from another source, such as the calendar, does not replace the condition: it may belong to other
 *   maintenance.
 * - Without an announced time, the maintenance counts as begun, because it may begin at any moment. A job of 100 hours
 *   must not be started on such a node.
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
