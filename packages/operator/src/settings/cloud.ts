import type { Flag } from './flags.ts';
import type { Sources } from './sources.ts';
import { MIN_INTERVAL_MS, parseInteger, parseTime, parseUrl, required, SettingsError } from './values.ts';

export interface CloudSettings {
  readonly url: string;
  /** API key, or the file that holds it. */
  readonly apiKey: string | { readonly file: string };
  /** File with the CA certificates to trust. @default the system's CAs */
  readonly ca: string | undefined;
  /** Timeout of one attempt of a request. */
  readonly timeoutMs: number;
  /** Interval at which the servers are listed. */
  readonly refreshMs: number;
  /** Time without a response from the cloud after which Ready of every VM is Unknown. */
  readonly unknownAfterMs: number;
  /** Interval of garbage collection. A server is deleted only if it has been without a VM for at least this time. */
  readonly sweepMs: number;
  /** Maximum number of concurrent reconciles of VMs. */
  readonly concurrency: number;
}

/** @throws SettingsError */
export function parseCloudSettings(sources: Sources): CloudSettings {
  const { text, name } = sources;
  const time = (flag: Flag, leastMs?: number) => parseTime(name(flag), text(flag), leastMs);
  return {
    url: required(
      'CLOUD_URL',
      parseUrl(name('cloud-url'), text('cloud-url')),
      'the URL of the private cloud, such as https://cloud.example:8480',
    ),
    apiKey: parseApiKey(sources),
    ca: text('cloud-ca') || undefined,
    timeoutMs: time('cloud-timeout'),
    refreshMs: time('vm-refresh', MIN_INTERVAL_MS),
    unknownAfterMs: time('vm-unknown-after', MIN_INTERVAL_MS),
    sweepMs: time('vm-sweep', MIN_INTERVAL_MS),
    concurrency: parseInteger(name('vm-concurrency'), text('vm-concurrency'), 1, 1_000),
  };
}

/**
 * Returns the API key in CLOUD_API_KEY, or the path in CLOUD_API_KEY_FILE. The file is not read here, because it may be
 * replaced at any time.
 */
function parseApiKey({ text, name, environment }: Sources): string | { readonly file: string } {
  const [file, key] = [text('cloud-api-key-file'), environment.CLOUD_API_KEY?.trim()];
  if (file !== '' && key)
    throw new SettingsError(
      `CLOUD_API_KEY and ${name('cloud-api-key-file')} are both set; unset one of them`,
    );
  if (file !== '') return { file };
  const given = required('CLOUD_API_KEY', key, 'the API key of the private cloud, from a Secret');
  if (/^[\x21-\x7e]+$/.test(given)) return given;
  throw new SettingsError(
    'CLOUD_API_KEY contains characters that a key cannot have; use printable ASCII characters without spaces',
  );
}
