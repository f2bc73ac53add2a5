/** A date of the calendar, without a time zone. */
export interface PlainDate {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const formats = new Map<string, Intl.DateTimeFormat>();

/** Whether a text is the name of a time zone, such as `Europe/Berlin`. */
export function isTimeZone(zone: string): boolean {
  try {
    formatOf(zone);
    return true;
  } catch {
    return false;
  }
}

/** Returns the date in a time zone at a moment. @param at milliseconds since 1970 */
export function dateIn(zone: string, at: number): PlainDate {
  const local = new Date(at + offsetAt(zone, at));
  return { year: local.getUTCFullYear(), month: local.getUTCMonth() + 1, day: local.getUTCDate() };
}

/**
 * Returns the moment of a local time. If clocks skip the time when daylight saving begins, it is moved forward by the
 * skipped hour: 02:30 becomes 03:30, as in RFC 5545. If the time occurs twice because daylight saving ends, the first
 * occurrence counts.
 * @param minutes minutes since midnight
 * @returns milliseconds since 1970
 */
export function momentOf({ year, month, day }: PlainDate, minutes: number, zone: string): number {
  const local = Date.UTC(year, month - 1, day) + minutes * MINUTE_MS;
  // `local` differs from the true moment by the offset, which is less than a day. So these are the offsets before and
  // after a clock change near that moment, if there is one.
  const [before, after] = [offsetAt(zone, local - DAY_MS), offsetAt(zone, local + DAY_MS)];
  const moments = [before, after].map((offset) => local - offset);
  const existing = moments.filter((at) => at + offsetAt(zone, at) === local);
  return existing.length === 0 ? local - before : Math.min(...existing);
}

/** Returns the offset of local time from UTC at a moment, in milliseconds. */
function offsetAt(zone: string, at: number): number {
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1_000) * 1_000;
}

/** @throws RangeError if the time zone does not exist */
function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const created = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  formats.set(zone, created);
  return created;
}
