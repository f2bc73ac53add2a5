const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** Description of the form that `parseRfc3339` accepts, for messages. */
export const RFC3339_FORM = 'a time such as 2026-12-01T08:00:00Z';

/**
 * Parses an RFC 3339 time. Rejects a time without a zone, because the operator's zone may differ from the author's.
 * @returns milliseconds since 1970; undefined if the text is not a time
 */
export function parseRfc3339(text: string): number | undefined {
  const [, year, month, day, hour, minute, second, , zone] = RFC3339.exec(text.trim()) ?? [];
  if (zone === undefined) return undefined;
  // Checks the day of the month, because Date accepts 31 February and moves it into March.
  const days = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  const isDate = Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= days;
  if (!isDate || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const ms = Date.parse(text.trim().toUpperCase());
  return Number.isNaN(ms) ? undefined : ms;
}
