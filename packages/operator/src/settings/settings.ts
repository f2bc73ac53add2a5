import { parseArgs } from 'node:util';
import { isLevel, LEVELS, type Level } from '@vmwright/runtime';
import { duration } from './duration.ts';

/** What the program is told, by flags and by its environment; checked. */
export interface Settings {
  /** Of its leases, certificates and service account. */
  readonly namespace: string;
  /** Those it looks at. @default all */
  readonly namespaces: readonly string[] | undefined;
  /** Marks what it makes outside; undefined: by the cluster itself. */
  readonly cluster: string | undefined;
  readonly election: ElectionSettings | undefined;
  /** An empty host stands for all addresses of this machine. */
  readonly status: { readonly host: string; readonly port: number };
  readonly webhook: { readonly port: number; readonly url: string | undefined };
  readonly logLevel: Level;
  readonly cloud: CloudSettings;
}

interface ElectionSettings {
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly retryMs: number;
}

export interface CloudSettings {
  readonly url: string;
  /** Or the file that it is in. */
  readonly apiKey: string | { readonly file: string };
  /** A file with the authorities to trust. @default the system's */
  readonly ca: string | undefined;
  readonly timeoutMs: number;
  readonly refreshMs: number;
  readonly sweepMs: number;
  readonly concurrency: number;
}

/** A flag or a variable is missing or wrong. The message names it, and says what would be right. */
export class SettingsError extends Error {
  readonly code = 'SETTINGS';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SettingsError';
  }
}

/** More often would only be a burden. */
const SHORTEST_MS = 500;

type Environment = Readonly<Record<string, string | undefined>>;

/** All flags, with their defaults. */
export const OPTIONS = {
  namespace: { type: 'string' },
  namespaces: { type: 'string' },
  'cluster-id': { type: 'string' },
  'leader-elect': { type: 'string', default: 'true' },
  'leader-elect-lease-duration': { type: 'string', default: '15s' },
  'leader-elect-renew-deadline': { type: 'string', default: '10s' },
  'leader-elect-retry-period': { type: 'string', default: '2s' },
  'status-address': { type: 'string', default: ':8080' },
  'webhook-port': { type: 'string', default: '9443' },
  'webhook-url': { type: 'string' },
  'log-level': { type: 'string', default: 'info' },
  'cloud-timeout': { type: 'string', default: '10s' },
  'vm-refresh': { type: 'string', default: '15s' },
  'vm-sweep': { type: 'string', default: '1m' },
  'vm-concurrency': { type: 'string', default: '8' },
} as const;

type Flag = keyof typeof OPTIONS;

/** @throws SettingsError */
export function settingsFrom(args: readonly string[], environment: Environment): Settings {
  const flags = flagsIn(args);
  const text = (flag: Flag) => flags[flag] ?? '';
  return {
    namespace: flags.namespace || environment.POD_NAMESPACE || 'vmwright-system',
    namespaces: listIn(flags.namespaces ?? environment.WATCH_NAMESPACES),
    cluster: clusterIn(flags['cluster-id']),
    election: truth('leader-elect', text('leader-elect')) ? electionIn(text) : undefined,
    status: addressIn('status-address', text('status-address')),
    webhook: {
      port: whole('webhook-port', text('webhook-port'), 0, 65_535),
      url: secureUrlIn('--webhook-url', flags['webhook-url']),
    },
    logLevel: level(text('log-level')),
    cloud: {
      url: required(
        'CLOUD_URL',
        urlIn('CLOUD_URL', environment.CLOUD_URL),
        "the private cloud's address, such as https://cloud.example:8480",
      ),
      apiKey: keyIn(environment),
      ca: environment.CLOUD_CA === '' ? undefined : environment.CLOUD_CA,
      timeoutMs: time('cloud-timeout', text('cloud-timeout')),
      refreshMs: time('vm-refresh', text('vm-refresh'), SHORTEST_MS),
      sweepMs: time('vm-sweep', text('vm-sweep'), SHORTEST_MS),
      concurrency: whole('vm-concurrency', text('vm-concurrency'), 1, 1_000),
    },
  };
}

function flagsIn(args: readonly string[]): { readonly [F in Flag]?: string } {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values;
  } catch (error) {
    throw new SettingsError(error instanceof Error ? error.message : String(error));
  }
}

function required(name: string, value: string | undefined, what: string): string {
  if (value === undefined || value === '') throw new SettingsError(`${name} is not set; it is ${what}`);
  return value;
}

function urlIn(name: string, value: string | undefined): string | undefined {
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

function secureUrlIn(name: string, value: string | undefined): string | undefined {
  const url = urlIn(name, value);
  if (url === undefined || url.startsWith('https:')) return url;
  throw new SettingsError(`${name} is "${value}"; the API server wants https://`);
}

export function listIn(value: string | undefined): readonly string[] | undefined {
  const names = value?.split(',').flatMap((name) => name.trim() || []);
  return names === undefined || names.length === 0 ? undefined : names;
}

function truth(flag: Flag, value: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true';
  throw wrong(flag, value, 'true or false');
}

function whole(flag: Flag, value: string, least: number, most: number): number {
  const count = Number(value);
  if (/^\d+$/.test(value) && count >= least && count <= most) return count;
  throw wrong(flag, value, `a whole number from ${least} to ${most}`);
}

function time(flag: Flag, value: string, leastMs = 1): number {
  const ms = duration(value);
  if (ms !== undefined && ms >= leastMs) return ms;
  const least = leastMs > 1 ? `, and not less than ${leastMs}ms` : '';
  throw wrong(flag, value, `a time such as 500ms, 15s or 2m${least}`);
}

/** Held to what an election can work with (see the runtime's), by the names of the flags. */
function electionIn(text: (flag: Flag) => string): ElectionSettings {
  const [lease, renew, retry] = [
    'leader-elect-lease-duration',
    'leader-elect-renew-deadline',
    'leader-elect-retry-period',
  ] as const;
  const [leaseMs, renewMs, retryMs] = [
    time(lease, text(lease)),
    time(renew, text(renew)),
    time(retry, text(retry)),
  ];
  if (leaseMs % 1_000 !== 0) throw wrong(lease, text(lease), 'whole seconds');
  if (renewMs >= leaseMs) throw wrong(renew, text(renew), `less than --${lease}, which is ${text(lease)}`);
  if (renewMs < 2 * retryMs)
    throw wrong(retry, text(retry), `at most half of --${renew}, which is ${text(renew)}`);
  return { leaseMs, renewMs, retryMs };
}

/** An empty one, as a template without a value leaves it, is none: two clusters that share it would sweep each other's. */
function clusterIn(value: string | undefined): string | undefined {
  if (value === undefined || value === '') return undefined;
  if (/^[A-Za-z0-9._-]{1,63}$/.test(value)) return value;
  throw wrong('cluster-id', value, '1 to 63 letters, digits, "-", "_" and ".", another for each cluster');
}

/** From a variable, or from a file that may be replaced at any time. */
function keyIn(environment: Environment): string | { readonly file: string } {
  const { CLOUD_API_KEY_FILE: file, CLOUD_API_KEY: key } = environment;
  if (file !== undefined && file !== '') return { file };
  const given = required(
    'CLOUD_API_KEY',
    key?.trim(),
    'the key with which the private cloud lets us in, from a Secret',
  );
  if (/^[\x21-\x7e]+$/.test(given)) return given;
  throw new SettingsError('CLOUD_API_KEY has a space, a line break or a letter in it that no key has');
}

function addressIn(flag: Flag, value: string): { readonly host: string; readonly port: number } {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(value) ?? [];
  if (port === '' || Number(port) > 65_535)
    throw wrong(flag, value, 'a port such as :8080, or an address and a port');
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

function level(value: string): Level {
  if (isLevel(value)) return value;
  throw wrong('log-level', value, LEVELS.join(', '));
}

function wrong(flag: Flag, value: string, wanted: string): SettingsError {
  return new SettingsError(`--${flag} is "${value}"; it wants ${wanted}`);
}
