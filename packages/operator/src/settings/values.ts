import { isLevel, LEVELS, type Level } from '@vmwright/runtime';
import { parseDuration } from './duration.ts';

/** Thrown when a setting is missing, unknown or invalid. The message names the setting and the valid values. */
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

/**
 * Returns a required value.
 * @param what description of a valid value, for the message
 * @throws SettingsError if it is missing
 */
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

/** @param name name of the setting for messages */
export function parseBoolean(name: string, value: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true';
  throw invalidSetting(name, value, 'true or false');
}

/** @param name name of the setting for messages, such as `--webhook-port` */
export function parseInteger(name: string, value: string, least: number, most: number): number {
  const count = Number(value);
  if (/^\d+$/.test(value) && count >= least && count <= most) return count;
  throw invalidSetting(name, value, `a whole number from ${least} to ${most}`);
}

/** @param name name of the setting for messages */
export function parseTime(name: string, value: string, leastMs = 1): number {
  const ms = parseDuration(value);
  if (ms !== undefined && ms >= leastMs) return ms;
  const least = leastMs > 1 ? ` of at least ${leastMs}ms,` : '';
  throw invalidSetting(name, value, `a time${least} such as 500ms, 15s or 2m`);
}

/** @param name name of the setting for messages */
export function parseAddress(name: string, value: string): { readonly host: string; readonly port: number } {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(value) ?? [];
  if (port === '' || Number(port) > 65_535)
    throw invalidSetting(name, value, 'a port such as :8080, or an address with a port');
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

/** @param name name of the setting for messages */
export function parseLevel(name: string, value: string): Level {
  if (isLevel(value)) return value;
  throw invalidSetting(name, value, `one of ${LEVELS.join(', ')}`);
}

export function invalidSetting(name: string, value: string, wanted: string): SettingsError {
  return new SettingsError(`${name} is "${value}"; it must be ${wanted}`);
}

/**
 * Returns the text of a value. A list becomes its items separated by commas. Undefined if there is no value.
 * @param name name of the setting for messages
 * @throws SettingsError
 */
export function textOf(name: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value)) return value.map(String).join();
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return String(value);
  throw new SettingsError(`${name} must be a single value`);
}
