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

export interface ElectionSettings {
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly retryMs: number;
}

export interface CloudSettings {
  readonly url: string;
  readonly apiKey: string;
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

type Environment = Readonly<Record<string, string | undefined>>;

const OPTIONS = {
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
    namespace: flags.namespace ?? environment.POD_NAMESPACE ?? 'vmwright-system',
    namespaces: listIn(flags.namespaces ?? environment.WATCH_NAMESPACES),
    cluster: flags['cluster-id'],
    election: truth('leader-elect', text('leader-elect'))
      ? {
          leaseMs: time('leader-elect-lease-duration', text('leader-elect-lease-duration')),
          renewMs: time('leader-elect-renew-deadline', text('leader-elect-renew-deadline')),
          retryMs: time('leader-elect-retry-period', text('leader-elect-retry-period')),
        }
      : undefined,
    status: addressIn('status-address', text('status-address')),
    webhook: {
      port: whole('webhook-port', text('webhook-port'), 0, 65_535),
      url: urlIn('--webhook-url', flags['webhook-url']),
    },
    logLevel: level(text('log-level')),
    cloud: {
      url: required(
        'CLOUD_URL',
        urlIn('CLOUD_URL', environment.CLOUD_URL),
        "the private cloud's address, such as https://cloud.example:8480",
      ),
      apiKey: required(
        'CLOUD_API_KEY',
        environment.CLOUD_API_KEY?.trim(),
        'the key with which the private cloud lets us in, from a Secret',
      ),
      ca: environment.CLOUD_CA === '' ? undefined : environment.CLOUD_CA,
      timeoutMs: time('cloud-timeout', text('cloud-timeout')),
      refreshMs: time('vm-refresh', text('vm-refresh')),
      sweepMs: time('vm-sweep', text('vm-sweep')),
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
    throw new SettingsError(`${name} is "${value}", which is no address: it begins with http:// or https://`);
  return value;
}

function listIn(value: string | undefined): readonly string[] | undefined {
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

function time(flag: Flag, value: string): number {
  const ms = duration(value);
  if (ms !== undefined && ms > 0) return ms;
  throw wrong(flag, value, 'a time such as 500ms, 15s or 2m');
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
