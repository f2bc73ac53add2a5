import type { Flag } from './flags.ts';
import { type Environment, required, SettingsError, SHORTEST_MS, time, urlIn, whole } from './values.ts';

export interface CloudSettings {
  readonly url: string;
  /** Or the file that it is in. */
  readonly apiKey: string | { readonly file: string };
  /** A file with the authorities to trust. @default the system's */
  readonly ca: string | undefined;
  readonly timeoutMs: number;
  readonly refreshMs: number;
  /** Time without an answer after which Ready of every VM is Unknown. */
  readonly unknownAfterMs: number;
  readonly sweepMs: number;
  readonly concurrency: number;
}

/** @throws SettingsError */
export function cloudIn(text: (flag: Flag) => string, environment: Environment): CloudSettings {
  return {
    url: required(
      'CLOUD_URL',
      urlIn('CLOUD_URL', environment.CLOUD_URL),
      "the private cloud's address, such as https://cloud.example:8480",
    ),
    apiKey: keyIn(environment),
    ca: environment.CLOUD_CA === '' ? undefined : environment.CLOUD_CA,
    timeoutMs: time('cloud-timeout', text('cloud-timeout')),
    refreshMs: time('vm-refresh', text('vm-refresh'), SHORTEST_MS),
    unknownAfterMs: time('vm-unknown-after', text('vm-unknown-after'), SHORTEST_MS),
    sweepMs: time('vm-sweep', text('vm-sweep'), SHORTEST_MS),
    concurrency: whole('vm-concurrency', text('vm-concurrency'), 1, 1_000),
  };
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
