import { isCidr, isIpv4, isIpv6, isMac } from './address.ts';

/*
 * String formats as the API server validates them, including its quirks. Not included: `uri` and `email`, which depend
 * on the Go version; `hostname`, which accepts more than host names (use a `pattern`); and formats that the API server
 * ignores.
 */

const FORMATS = {
  byte: isBase64,
  cidr: isCidr,
  date: isDate,
  'date-time': isDateTime,
  duration: isDuration,
  ipv4: isIpv4,
  ipv6: isIpv6,
  mac: isMac,
  uuid: isUuid,
} as const;

/** String formats that both the API server and the validator check. */
export type Format = keyof typeof FORMATS;

/** Whether a string has the format; true for formats that the API server does not check. */
export function isOfFormat(format: string, value: string): boolean {
  return isFormat(format) ? FORMATS[format](value) : true;
}

export function isFormat(format: string): format is Format {
  return Object.hasOwn(FORMATS, format);
}

/** Returns whether a string is non-empty base64 of the standard alphabet (`+`, `/`), with padding. */
function isBase64(value: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(value) && value.length % 4 === 0;
}

function isDate(value: string): boolean {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(value)?.map(Number) ?? [];
  if (year === undefined || month === undefined || day === undefined) return false;
  if (month < 1 || month > 12 || day < 1) return false;
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = month === 2 ? (leap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
  return day <= days;
}

/**
 * Returns whether a string is an RFC 3339 time in upper or lower case. Like the API server, accepts any character in
 * place of the decimal point, and any digits in the offset.
 */
function isDateTime(value: string): boolean {
  const [date = '', time] = value.toLowerCase().split('t');
  if (time === undefined || !isDate(date)) return false;
  const parts = /^(\d\d):(\d\d):(\d\d)(?:.\d+)?(?:z|[+-]\d\d:\d\d)$/u.exec(time);
  if (parts === null) return false;
  const [, hours = '', minutes = '', seconds = ''] = parts;
  return hours <= '23' && minutes <= '59' && seconds <= '59';
}

const INT64_MAX = 2n ** 63n - 1n;
const GO_DURATION = /^[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|[uµμ]s|ms|s|m|h))+)$/u;
const DURATION_UNITS = [
  ['ns', 'nano'],
  ['us', 'µs', 'micro'],
  ['ms', 'milli'],
  ['s', 'sec'],
  ['m', 'min'],
  ['h', 'hr', 'hour'],
  ['d', 'day'],
  ['w', 'wk', 'week'],
];

/** Returns whether a string is a Go duration (`1h30m`), or contains a number and a unit (`about 2 days`). */
function isDuration(value: string): boolean {
  const fits = (digits: string) => BigInt(digits) <= INT64_MAX;
  if (GO_DURATION.test(value) && [...value.matchAll(/(?<![.\d])\d+/g)].every(([digits]) => fits(digits)))
    return true;
  const amounts = [...value.matchAll(/(\d+)\s*([A-Za-zµ]+)/g)];
  return (
    amounts.every(([, digits = '']) => fits(digits)) &&
    amounts.some(([, , unit = '']) => isUnit(unit.toLowerCase()))
  );
}

/**
 * Returns whether a text is any name in `DURATION_UNITS`, or begins with the last name in one of its rows. For example,
 * `seconds` begins with `sec`.
 */
function isUnit(unit: string): boolean {
  return DURATION_UNITS.some((words) => words.includes(unit) || unit.startsWith(words.at(-1) ?? unit));
}

/** Returns whether a string is a UUID. Each hyphen is optional. */
function isUuid(value: string): boolean {
  return /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(value);
}
