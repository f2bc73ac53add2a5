import type { Maintenance } from '../candidate.ts';

/** Maintenance that a source reports, and the invalid values of the source. */
export interface Planned {
  readonly maintenance: readonly Maintenance[];
  /**
   * Reasons why the operator may not know all maintenance, one sentence each. Example: a start that cannot be parsed.
   */
  readonly unknown: readonly string[];
  /**
   * Invalid ends, one sentence each: an end that cannot be parsed or is not later than the start. Maintenance with an
   * invalid end counts as maintenance without an end.
   */
  readonly warnings: readonly string[];
}

export const NOTHING_PLANNED: Planned = { maintenance: [], unknown: [], warnings: [] };

/** Value of `startsAt` for maintenance that has begun at an unknown time. */
export const BEGUN = 0;

/** Merges the planned maintenance of several sources. Sorts it by start and leaves out maintenance that has ended. */
export function merged(all: readonly Planned[], now: number): Planned {
  const maintenance = all
    .flatMap((each) => each.maintenance)
    .filter(({ endsAt }) => endsAt === undefined || endsAt > now);
  return {
    maintenance: maintenance.toSorted(
      (a, b) => a.startsAt - b.startsAt || (a.source < b.source ? -1 : Number(a.source > b.source)),
    ),
    unknown: all.flatMap(({ unknown }) => unknown),
    warnings: all.flatMap(({ warnings }) => warnings),
  };
}

/** Maximum length of a value in a warning. Annotations may be much longer. */
const MOST_CHARACTERS = 64;

/** Returns the sentence about an invalid value. */
export function unreadable(node: string, key: string, value: string, expected: string): string {
  const shown = value.length > MOST_CHARACTERS ? `${value.slice(0, MOST_CHARACTERS)}…` : value;
  return `node ${node}: ${key} is "${shown}"; it must be ${expected}`;
}
