import { parse } from 'yaml';
import { parseDuration } from '../../settings/duration.ts';
import { Glob } from '../glob.ts';
import type { CalendarWindow } from './calendar.ts';
import type { Recurrence } from './recurrence.ts';
import { parseRfc3339, RFC3339_FORM } from './times.ts';
import { isTimeZone } from './zoned-time.ts';

/** Thrown when a calendar file is invalid. The message names the field and the expected form. */
class CalendarError extends Error {
  readonly code = 'CALENDAR';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CalendarError';
  }
}

const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const ONCE = ['start', 'end'];
const REPEATED = ['weekdays', 'weeksOfMonth', 'at', 'duration', 'timeZone'];
const FILE_FIELDS = new Set(['windows']);
const WINDOW_FIELDS = new Set(['name', 'nodes', 'hosts', 'nodeSelector', ...ONCE, ...REPEATED]);
const LONGEST_MS = 31 * 24 * 60 * 60 * 1_000;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Parses a calendar file.
 * @throws CalendarError if any part is invalid, or `windows` is missing: ignoring a part of the file, or accepting a
 * truncated file, would hide maintenance
 */
export function parseCalendar(text: string): readonly CalendarWindow[] {
  const fields = fieldsOf(parsed(text) ?? {}, 'the file');
  rejectUnknown(fields, FILE_FIELDS, 'the file');
  const { windows } = fields;
  if (!Array.isArray(windows))
    throw new CalendarError('windows must be a list; if nothing is planned, write "windows: []"');
  return windows.map((each: unknown, index) => windowOf(each, `windows[${index}]`));
}

function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    // Only the first line: the rest of the parser's message is an excerpt of the file.
    const [problem = ''] = String(error instanceof Error ? error.message : error).split('\n');
    throw new CalendarError(`the file is not YAML: ${problem}`, { cause: error });
  }
}

function windowOf(value: unknown, path: string): CalendarWindow {
  const fields = fieldsOf(value, path);
  rejectUnknown(fields, WINDOW_FIELDS, path);
  const [nodes, hosts] = [patternsOf(fields, 'nodes', path), patternsOf(fields, 'hosts', path)];
  const nodeSelector = selectorOf(fields, path);
  if (nodes === undefined && hosts === undefined && nodeSelector === undefined)
    throw new CalendarError(
      `${path} selects no nodes; set nodes, hosts or nodeSelector (nodes: ["*"] for all)`,
    );
  const isOnce = ONCE.some((key) => key in fields);
  if (isOnce && REPEATED.some((key) => key in fields))
    throw new CalendarError(
      `${path} must have either the fields start and end, or the fields at, duration and timeZone`,
    );
  const name = textOf(fields, 'name', path, 'a string', (text) => (text === '' ? undefined : text));
  return {
    name,
    nodes,
    hosts,
    nodeSelector,
    time: isOnce ? onceOf(fields, path) : recurrenceOf(fields, path),
  };
}

function onceOf(fields: Fields, path: string): { startsAt: number; endsAt: number } {
  const startsAt = textOf(fields, 'start', path, RFC3339_FORM, parseRfc3339);
  const endsAt = textOf(fields, 'end', path, RFC3339_FORM, parseRfc3339);
  if (endsAt <= startsAt) throw new CalendarError(`${path}.end must be later than ${path}.start`);
  return { startsAt, endsAt };
}

function recurrenceOf(fields: Fields, path: string): Recurrence {
  const { weekdays = WEEKDAYS, weeksOfMonth } = fields;
  return {
    weekdays: new Set(
      listOf(weekdays, `${path}.weekdays`, `a list of ${WEEKDAYS.join(', ')}`, (day) => {
        const index = WEEKDAYS.indexOf(String(day));
        return index === -1 ? undefined : index;
      }),
    ),
    weeksOfMonth:
      weeksOfMonth === undefined
        ? undefined
        : new Set(
            listOf(
              weeksOfMonth,
              `${path}.weeksOfMonth`,
              'a list of numbers from 1 to 5, or -1 for the last',
              (week) => [1, 2, 3, 4, 5, -1].find((each) => each === week),
            ),
          ),
    minutes: textOf(fields, 'at', path, 'a time such as "02:30"', minutesOf),
    durationMs: textOf(fields, 'duration', path, 'a time such as 4h or 90m, at most 744h', (text) => {
      const ms = parseDuration(text) ?? 0;
      return ms > 0 && ms <= LONGEST_MS ? ms : undefined;
    }),
    timeZone: textOf(fields, 'timeZone', path, 'a time zone such as Europe/Berlin or UTC', (zone) =>
      isTimeZone(zone) ? zone : undefined,
    ),
  };
}

function minutesOf(text: string): number | undefined {
  const [, hours, minutes] = /^(\d\d):(\d\d)$/.exec(text) ?? [];
  if (hours === undefined || Number(hours) > 23 || Number(minutes) > 59) return undefined;
  return Number(hours) * 60 + Number(minutes);
}

function patternsOf(fields: Fields, key: string, path: string): readonly Glob[] | undefined {
  const value = fields[key];
  if (value === undefined) return undefined;
  return listOf(value, `${path}.${key}`, 'a list of names, in which * and ? are wildcards', (name) =>
    typeof name === 'string' && name !== '' ? new Glob(name, { anyCharacter: '?' }) : undefined,
  );
}

function selectorOf(fields: Fields, path: string): Readonly<Record<string, string>> | undefined {
  if (fields.nodeSelector === undefined) return undefined;
  const entries = Object.entries(fieldsOf(fields.nodeSelector, `${path}.nodeSelector`));
  if (entries.length === 0) throw new CalendarError(`${path}.nodeSelector has no labels`);
  return Object.fromEntries(
    entries.map(([key, value]) => {
      if (typeof value !== 'string')
        throw new CalendarError(`${path}.nodeSelector.${key} must be a string; quote the value`);
      return [key, value];
    }),
  );
}

function listOf<T>(
  value: unknown,
  path: string,
  expected: string,
  parseItem: (item: unknown) => T | undefined,
): readonly T[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  const parsedItems = items.flatMap((item) => parseItem(item) ?? []);
  if (items.length > 0 && parsedItems.length === items.length) return parsedItems;
  throw new CalendarError(`${path} is ${JSON.stringify(value)}; it must be ${expected}`);
}

function textOf<T>(
  fields: Fields,
  key: string,
  path: string,
  expected: string,
  parseText: (text: string) => T | undefined,
): T {
  const value = fields[key];
  const result = typeof value === 'string' ? parseText(value) : undefined;
  if (result !== undefined) return result;
  const found = value === undefined ? 'is missing' : `is ${JSON.stringify(value)}`;
  throw new CalendarError(`${path}.${key} ${found}; it must be ${expected}`);
}

function rejectUnknown(fields: Fields, known: ReadonlySet<string>, path: string): void {
  const unknown = Object.keys(fields).find((key) => !known.has(key));
  if (unknown !== undefined)
    throw new CalendarError(
      `${path} has an unknown field "${unknown}"; it may have ${[...known].join(', ')}`,
    );
}

function fieldsOf(value: unknown, path: string): Fields {
  if (isFields(value)) return value;
  throw new CalendarError(`${path} must be a map of fields`);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
