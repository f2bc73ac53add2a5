import { isLevel, LEVELS, type Level } from '@vmwright/runtime';
import { parseDuration } from './duration.ts';

/** Thrown when a flag or an environment variable is missing or invalid. The message names it and the valid values. */
export class SettingsError extends Error {
  readonly code = 'SETTINGS';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SettingsError';
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Shortest interval that a flag accepts, to protect the backends. */
export const MIN_INTERVAL_MS = 500;

/** Returns a value. @param what description of a valid value, for the message @throws SettingsError if it is missing */
export function required(name: string, value: string | undefined, what: string): string {
  if (value === undefined || value === '') throw new SettingsError(`${name} is not set; set it to ${what}`);
  return value;
}

export function parseUrl(name: string, value: string | undefined): string | undefined {
  if (value === undefined || value === '') return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new SettingsError(
      value.includes('@')
        ? `${name} is not a URL that begins with http:// or https://` // the value may contain a password
        : `${name} is "${value}"; it must be a URL that begins with http:// or https://`,
    );
  if (url.username !== '' || url.password !== '')
    throw new SettingsError(`${name} must not contain a user or a password`);
  return value;
}

export function parseHttpsUrl(name: string, value: string | undefined): string | undefined {
  const url = parseUrl(name, value);
  if (url === undefined || url.startsWith('https:')) return url;
  throw new SettingsError(`${name} is "${value}"; the API server requires https://`);
}

export function parseList(value: string | undefined): readonly string[] | undefined {
  const names = value?.split(',').flatMap((name) => name.trim() || []);
  return names === undefined || names.length === 0 ? undefined : names;
}

export function parseBoolean(flag: string, value: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true';
  throw invalidFlag(flag, value, 'true or false');
}

/** @param name setting as messages name it, such as `--webhook-port` */
export function parseInteger(name: string, value: string, least: number, most: number): number {
  const count = Number(value);
  if (/^\d+$/.test(value) && count >= least && count <= most) return count;
  throw invalidSetting(name, value, `a whole number from ${least} to ${most}`);
}

/** @param name setting as messages name it */
export function parseTime(name: string, value: string, leastMs = 1): number {
  const ms = parseDuration(value);
  if (ms !== undefined && ms >= leastMs) return ms;
  const least = leastMs > 1 ? ` of at least ${leastMs}ms,` : '';
  throw invalidSetting(name, value, `a time${least} such as 500ms, 15s or 2m`);
}

/** @param name setting as messages name it */
export function parseAddress(name: string, value: string): { readonly host: string; readonly port: number } {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(value) ?? [];
  if (port === '' || Number(port) > 65_535)
    throw invalidSetting(name, value, 'a port such as :8080, or an address with a port');
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

export function parseLevel(value: string): Level {
  if (isLevel(value)) return value;
  throw invalidFlag('log-level', value, `one of ${LEVELS.join(', ')}`);
}

export function invalidFlag(flag: string, value: string, wanted: string): SettingsError {
  return invalidSetting(`--${flag}`, value, wanted);
}

export function invalidSetting(name: string, value: string, wanted: string): SettingsError {
  return new SettingsError(`${name} is "${value}"; it must be ${wanted}`);
}
