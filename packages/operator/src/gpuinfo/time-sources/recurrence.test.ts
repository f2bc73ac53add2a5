import fc from 'fast-check';
import { expect, test } from 'vitest';
import { occurrences, type Recurrence } from './recurrence.ts';
import { dateIn, isTimeZone, momentOf } from './zoned-time.ts';

const iso = (ms: number) => new Date(ms).toISOString();
const at = (text: string) => Date.parse(text);
const ALL = new Set([0, 1, 2, 3, 4, 5, 6]);
const HOUR = 3_600_000;

const every = (more: Partial<Recurrence>): Recurrence => ({
  weekdays: ALL,
  weeksOfMonth: undefined,
  minutes: 0,
  durationMs: HOUR,
  timeZone: 'UTC',
  ...more,
});
const starts = (recurrence: Recurrence, now: string, count: number) =>
  occurrences(recurrence, 's', at(now))
    .slice(0, count)
    .map(({ startsAt }) => iso(startsAt));

test.each([
  ['on an ordinary day', '2026-11-17', 150, 'Europe/Berlin', '2026-11-17T01:30:00.000Z'],
  ['that clocks skip in spring', '2026-03-29', 150, 'Europe/Berlin', '2026-03-29T01:30:00.000Z'],
  ['right before the skipped hour', '2026-03-29', 119, 'Europe/Berlin', '2026-03-29T00:59:00.000Z'],
  ['right after the skipped hour', '2026-03-29', 180, 'Europe/Berlin', '2026-03-29T01:00:00.000Z'],
  ['that occurs twice in autumn', '2026-10-25', 150, 'Europe/Berlin', '2026-10-25T00:30:00.000Z'],
  ['right after the repeated hour', '2026-10-25', 180, 'Europe/Berlin', '2026-10-25T02:00:00.000Z'],
  ['that clocks skip in New York', '2026-03-08', 150, 'America/New_York', '2026-03-08T07:30:00.000Z'],
  ['that occurs twice in New York', '2026-11-01', 90, 'America/New_York', '2026-11-01T05:30:00.000Z'],
  ['with a shift of half an hour', '2026-04-05', 105, 'Australia/Lord_Howe', '2026-04-04T14:45:00.000Z'],
  ['east of the date line', '2026-01-01', 0, 'Pacific/Kiritimati', '2025-12-31T10:00:00.000Z'],
])(
  'a local time %s (%s, minute %s of the day in %s) is the UTC time %s',
  (_title, date, minutes, zone, expected) => {
    const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
    expect(iso(momentOf({ year, month, day }, minutes, zone))).toBe(expected);
  },
);

test('time zones are recognized by their IANA name', () => {
  expect(['Europe/Berlin', 'UTC', 'America/Argentina/Ushuaia'].map(isTimeZone)).toEqual([true, true, true]);
  expect(['Europe/Atlantis', '', 'CETZ'].map(isTimeZone)).toEqual([false, false, false]);
});

test('windows before and after a change of daylight saving time have the same local time and length', () => {
  const sundays = every({
    weekdays: new Set([0]),
    minutes: 240,
    durationMs: 4 * HOUR,
    timeZone: 'Europe/Berlin',
  });
  expect(starts(sundays, '2026-03-20T00:00:00Z', 3)).toEqual([
    '2026-03-22T03:00:00.000Z',
    '2026-03-29T02:00:00.000Z',
    '2026-04-05T02:00:00.000Z',
  ]);
  expect(starts(sundays, '2026-10-17T00:00:00Z', 3)).toEqual([
    '2026-10-18T02:00:00.000Z',
    '2026-10-25T03:00:00.000Z',
    '2026-11-01T03:00:00.000Z',
  ]);
  for (const { startsAt, endsAt = 0 } of occurrences(sundays, 's', at('2026-03-20T00:00:00Z')).slice(0, -1))
    expect(endsAt - startsAt).toBe(4 * HOUR);
});

test('a window has its full duration even if the clocks change during the window', () => {
  const nightly = every({ minutes: 60, durationMs: 3 * HOUR, timeZone: 'Europe/Berlin' });
  const [night] = occurrences(nightly, 's', at('2026-03-29T00:30:00Z'));
  expect([iso(night?.startsAt ?? 0), iso(night?.endsAt ?? 0)]).toEqual([
    '2026-03-29T00:00:00.000Z',
    '2026-03-29T03:00:00.000Z',
  ]);
});

test('a window in progress is listed until it ends', () => {
  const daily = every({ minutes: 600 });
  expect(starts(daily, '2026-11-17T10:59:59Z', 1)).toEqual(['2026-11-17T10:00:00.000Z']);
  expect(starts(daily, '2026-11-17T11:00:00Z', 1)).toEqual(['2026-11-18T10:00:00.000Z']);
});

test('a window of several days is listed while it lasts', () => {
  const long = every({ weekdays: new Set([5]), minutes: 1_200, durationMs: 60 * HOUR });
  expect(starts(long, '2026-11-23T07:00:00Z', 1)).toEqual(['2026-11-20T20:00:00.000Z']);
});

test.each([
  ['the second Tuesday', [2], [2], ['2026-12-08', '2027-01-12']],
  ['the last Sunday', [0], [-1], ['2026-11-29', '2026-12-27']],
  ['the fifth Monday', [1], [5], ['2026-11-30', '2027-03-29']],
])('a monthly window is listed on %s of the month', (_title, weekdays, weeks, expected) => {
  const monthly = every({ weekdays: new Set(weekdays), weeksOfMonth: new Set(weeks) });
  const days = starts(monthly, '2026-11-17T00:00:00Z', 2).map((start) => start.slice(0, 10));
  expect(days).toEqual(expected);
});

test('the last listed window has no end, so that the node does not appear free during later windows, which are not listed', () => {
  const daily = occurrences(every({}), 's', at('2026-11-17T12:00:00Z'));
  expect(daily).toHaveLength(16);
  expect(daily.map(({ endsAt }) => endsAt === undefined)).toEqual([...Array(15).fill(false), true]);
});

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'Africa/Casablanca',
];

test('at any time, the listed windows are in order, have not ended, and begin at their local time', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: at('2024-01-01T00:00:00Z'), max: at('2032-01-01T00:00:00Z') }),
      fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { minLength: 1 }),
      fc.integer({ min: 0, max: 1_439 }),
      fc.integer({ min: 1, max: 72 }),
      fc.constantFrom(...ZONES),
      (now, weekdays, minutes, hours, timeZone) => {
        const recurrence = every({
          weekdays: new Set(weekdays),
          minutes,
          durationMs: hours * HOUR,
          timeZone,
        });
        const found = occurrences(recurrence, 's', now);
        expect(found.length).toBeGreaterThanOrEqual(2);
        for (const [index, { startsAt, endsAt }] of found.entries()) {
          expect(endsAt ?? Number.POSITIVE_INFINITY).toBeGreaterThan(now);
          if (index > 0) expect(startsAt).toBeGreaterThan(found[index - 1]?.startsAt ?? 0);
          const { year, month, day } = dateIn(timeZone, startsAt);
          expect(weekdays).toContain(new Date(Date.UTC(year, month - 1, day)).getUTCDay());
          expect(momentOf({ year, month, day }, minutes, timeZone)).toBe(startsAt);
        }
      },
    ),
    { numRuns: 200 },
  );
});
