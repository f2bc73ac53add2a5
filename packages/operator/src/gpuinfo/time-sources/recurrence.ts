import type { Maintenance } from '../candidate.ts';
import { dateIn, momentOf, type PlainDate } from './zoned-time.ts';

/** A maintenance window that is repeated on days of the week. */
export interface Recurrence {
  /** Days of the week, 0 for Sunday. */
  readonly weekdays: ReadonlySet<number>;
  /**
   * Occurrences of these weekdays in a month: 1 to 5, or -1 for the last one. With Tuesday, `{2}` means the second
   * Tuesday of each month. Undefined: every week.
   */
  readonly weeksOfMonth: ReadonlySet<number> | undefined;
  /** Local time of the start, in minutes since midnight. */
  readonly minutes: number;
  readonly durationMs: number;
  /** IANA time zone of `minutes` and of the days. */
  readonly timeZone: string;
}

const DAY_MS = 24 * 60 * 60 * 1_000;
/**
 * Maximum number of windows that `occurrences` returns. It searches the next `LOOK_AHEAD_DAYS`, and later days only
 * until it has found two windows. The first window limits how long a node is available. The later ones show when a job
 * that does not fit now can start.
 */
const MOST_WINDOWS = 16;
const LOOK_AHEAD_DAYS = 63;
/**
 * Maximum number of days to search ahead. It is enough to find two windows even if they occur only on, for example, the
 * fifth Tuesday of a month: at most 13 weeks lie between two such days.
 */
const LONGEST_SEARCH_DAYS = 400;

/**
 * Returns at least two windows: the current ones, if any, and the next ones. The last window is returned without an
 * end, because later windows are not listed. With an end, the node would appear to be free forever after that window.
 */
export function occurrences(recurrence: Recurrence, source: string, now: number): readonly Maintenance[] {
  const { timeZone, minutes, durationMs } = recurrence;
  const today = dateIn(timeZone, now);
  const found: Maintenance[] = [];
  const first = -Math.ceil(durationMs / DAY_MS) - 1;
  for (let days = first; days < LONGEST_SEARCH_DAYS; days++) {
    if (found.length >= (days < LOOK_AHEAD_DAYS ? MOST_WINDOWS : 2)) break;
    const date = plusDays(today, days);
    if (!isOn(recurrence, date)) continue;
    const startsAt = momentOf(date, minutes, timeZone);
    const endsAt = startsAt + durationMs;
    if (endsAt > now) found.push({ startsAt, endsAt, source });
  }
  return found.map((each, index) =>
    index === found.length - 1 ? { startsAt: each.startsAt, source } : each,
  );
}

function isOn({ weekdays, weeksOfMonth }: Recurrence, { year, month, day }: PlainDate): boolean {
  if (!weekdays.has(new Date(Date.UTC(year, month - 1, day)).getUTCDay())) return false;
  if (weeksOfMonth === undefined) return true;
  const daysInMonth = new Date(Date.UTC(year, month, 0)).getUTCDate();
  return weeksOfMonth.has(Math.ceil(day / 7)) || (weeksOfMonth.has(-1) && day + 7 > daysInMonth);
}

function plusDays({ year, month, day }: PlainDate, days: number): PlainDate {
  const date = new Date(Date.UTC(year, month - 1, day + days));
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() };
}
