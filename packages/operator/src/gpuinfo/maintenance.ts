import type { Maintenance } from './candidate.ts';

export const HOUR_MS = 3_600_000;

/** Returns the first maintenance that is not over; undefined if there is none. */
export function nextMaintenance(all: readonly Maintenance[], now: number): Maintenance | undefined {
  return all.find((maintenance) => endOf(maintenance) > now);
}

/**
 * Whether no maintenance overlaps the time from `start` to `end`.
 * @param all in order of `startsAt`
 */
export function isFreeOfMaintenance(all: readonly Maintenance[], start: number, end: number): boolean {
  for (const maintenance of all) {
    if (endOf(maintenance) <= start) continue;
    return maintenance.startsAt > start && maintenance.startsAt >= end;
  }
  return true;
}

/** Returns the end of a maintenance; infinity if it is not known. */
export function endOf({ endsAt = Number.POSITIVE_INFINITY }: Maintenance): number {
  return endsAt;
}

/** Returns the earliest of the known times; undefined if no time is known. */
export function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
