import type { Node } from '../kinds.ts';
import { NOTHING_PLANNED, type Planned, unreadable } from './planned.ts';

const LABEL = 'cloud.google.com/scheduled-maintenance-time';

/**
 * Reads the start of host maintenance that Google announces on a Node, in seconds since 1970. GKE removes the label
 * after the maintenance.
 */
export function gkeMaintenance({ metadata: { name, labels = {} } }: Node): Planned {
  const text = labels[LABEL];
  if (text === undefined) return NOTHING_PLANNED;
  // More than 11 digits are rejected: they would be milliseconds, or a time after the year 5138.
  if (!/^\d{1,11}$/.test(text))
    return {
      ...NOTHING_PLANNED,
      unknown: [unreadable(name, `label ${LABEL}`, text, 'a time in seconds since 1970, such as 1796112000')],
    };
  return {
    ...NOTHING_PLANNED,
    maintenance: [{ startsAt: Number(text) * 1_000, source: `label ${LABEL}` }],
  };
}
