import { isLevel, LEVELS, type Level } from '@vmwright/runtime';
import { duration } from './duration.ts';

/** A flag or a variable is missing or wrong. The message names it, and says what would be right. */
export class SettingsError extends Error {
  readonly code = 'SETTINGS';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SettingsError';
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** More often would only be a burden. */
export const SHORTEST_MS = 500;

export function required(name: string, value: string | undefined, what: string): string {
  if (value === undefined || value === '') throw new SettingsError(`${name} is not set; it is ${what}`);
  return value;
}

export function urlIn(name: string, value: string | undefined): string | undefined {
  if (value === undefined || value === '') return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new SettingsError(
      value.includes('@')
        ? `${name} is no address: it begins with http:// or https://` // what stands before the @ is not ours to show
        : `${name} is "${value}", which is no address: it begins with http:// or https://`,
    );
  if (url.username !== '' || url.password !== '')
    throw new SettingsError(`${name} has a user or a password in it; the key has a variable of its own`);
  return value;
}

export function secureUrlIn(name: string, value: string | undefined): string | undefined {
  const url = urlIn(name, value);
  if (url === undefined || url.startsWith('https:')) return url;
  throw new SettingsError(`${name} is "${value}"; the API server wants https://`);
}

export function listIn(value: string | undefined): readonly string[] | undefined {
  const names = value?.split(',').flatMap((name) => name.trim() || []);
  return names === undefined || names.length === 0 ? undefined : names;
}

export function truth(flag: string, value: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true';
  throw wrong(flag, value, 'true or false');
}

export function whole(flag: string, value: string, least: number, most: number): number {
  const count = Number(value);
  if (/^\d+$/.test(value) && count >= least && count <= most) return count;
  throw wrong(flag, value, `a whole number from ${least} to ${most}`);
}

export function time(flag: string, value: string, leastMs = 1): number {
  const ms = duration(value);
  if (ms !== undefined && ms >= leastMs) return ms;
  const least = leastMs > 1 ? `, and not less than ${leastMs}ms` : '';
  throw wrong(flag, value, `a time such as 500ms, 15s or 2m${least}`);
}

export function addressIn(flag: string, value: string): { readonly host: string; readonly port: number } {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(value) ?? [];
  if (port === '' || Number(port) > 65_535)
    throw wrong(flag, value, 'a port such as :8080, or an address and a port');
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

export function level(value: string): Level {
  if (isLevel(value)) return value;
  throw wrong('log-level', value, LEVELS.join(', '));
}

export function wrong(flag: string, value: string, wanted: string): SettingsError {
  return new SettingsError(`--${flag} is "${value}"; it wants ${wanted}`);
}
