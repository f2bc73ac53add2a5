import type { Flag } from './flags.ts';
import {
  type Environment,
  MIN_INTERVAL_MS,
  parseInteger,
  parseTime,
  parseUrl,
  required,
  SettingsError,
} from './values.ts';

export interface CloudSettings {
  readonly url: string;
  /** API key, or the file that holds it. */
  readonly apiKey: string | { readonly file: string };
  /** File with the CA certificates to trust. @default the system's */
  readonly ca: string | undefined;
  /** Timeout of one attempt of a request. */
  readonly timeoutMs: number;
  /** Interval between two lists of the servers. */
  readonly refreshMs: number;
  /** Time without an answer from the cloud after which Ready of every VM is Unknown. */
  readonly unknownAfterMs: number;
  /** Interval and grace period of garbage collection. */
  readonly sweepMs: number;
  /** Number of VMs that are reconciled at the same time. */
  readonly concurrency: number;
}

/** @throws SettingsError */
export function parseCloudSettings(text: (flag: Flag) => string, environment: Environment): CloudSettings {
  return {
    url: required(
      'CLOUD_URL',
      parseUrl('CLOUD_URL', environment.CLOUD_URL),
      'the URL of the private cloud, such as https://cloud.example:8480',
    ),
    apiKey: parseApiKey(environment),
    ca: environment.CLOUD_CA === '' ? undefined : environment.CLOUD_CA,
    timeoutMs: parseTime('--cloud-timeout', text('cloud-timeout')),
    refreshMs: parseTime('--vm-refresh', text('vm-refresh'), MIN_INTERVAL_MS),
    unknownAfterMs: parseTime('--vm-unknown-after', text('vm-unknown-after'), MIN_INTERVAL_MS),
    sweepMs: parseTime('--vm-sweep', text('vm-sweep'), MIN_INTERVAL_MS),
    concurrency: parseInteger('--vm-concurrency', text('vm-concurrency'), 1, 1_000),
  };
}

/** Returns the key from CLOUD_API_KEY, or the file of CLOUD_API_KEY_FILE, which may be replaced at any time. */
function parseApiKey(environment: Environment): string | { readonly file: string } {
  const { CLOUD_API_KEY_FILE: file, CLOUD_API_KEY: key } = environment;
  if (file !== undefined && file !== '') return { file };
  const given = required('CLOUD_API_KEY', key?.trim(), 'the API key of the private cloud, from a Secret');
  if (/^[\x21-\x7e]+$/.test(given)) return given;
  throw new SettingsError(
    'CLOUD_API_KEY contains characters that a key cannot have; use printable ASCII characters without spaces',
  );
}
