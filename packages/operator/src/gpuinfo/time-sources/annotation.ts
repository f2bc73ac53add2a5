import type { Node } from '../kinds.ts';
import { BEGUN, NOTHING_PLANNED, type Planned, unreadable } from './planned.ts';
import { parseRfc3339, RFC3339_FORM } from './times.ts';

const START = 'vmwright.dev/maintenance-start';
const END = 'vmwright.dev/maintenance-end';
const SOURCE = `annotation ${START}`;

/** Whether this source reads the Node annotation with this key. */
export function isMaintenanceAnnotation(key: string): boolean {
  return key === START || key === END;
}

/**
 * Reads the maintenance that an administrator has announced with annotations on the Node. If the start is `now`, or
 * only the end is set, the maintenance has begun. If the end is invalid or not later than the start, the end is
 * ignored, and the maintenance has no known end.
 */
export function annotatedMaintenance({ metadata: { name, annotations = {} } }: Node): Planned {
  const [start, end] = [annotations[START], annotations[END]];
  if (start === undefined && end === undefined) return NOTHING_PLANNED;
  const warnings: string[] = [];
  const startsAt = start === undefined || start.trim() === 'now' ? BEGUN : parseRfc3339(start);
  if (startsAt === undefined)
    return {
      ...NOTHING_PLANNED,
      unknown: [unreadable(name, `annotation ${START}`, start ?? '', `${RFC3339_FORM}, or now`)],
    };
  let endsAt = end === undefined ? undefined : parseRfc3339(end);
  if (end !== undefined && endsAt === undefined)
    warnings.push(unreadable(name, `annotation ${END}`, end, RFC3339_FORM));
  if (endsAt !== undefined && endsAt <= startsAt) {
    warnings.push(unreadable(name, `annotation ${END}`, end ?? '', `later than ${START}`));
    endsAt = undefined;
  }
  return { maintenance: [{ startsAt, endsAt, source: SOURCE }], unknown: [], warnings };
}
