import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { CloudClient } from '@vmwright/cloud';
import {
  exponentialBuckets,
  type Logger,
  messageOf,
  type Registry,
  type Tracer,
  type World,
} from '@vmwright/runtime';
import type { CloudSettings } from './settings/cloud.ts';
import { SettingsError } from './settings/values.ts';

/**
 * Returns a client of the private cloud. The client records metrics and, with a tracer, spans.
 * @param options.log only the operator passes a logger. If the key cannot be read, the error is then only logged: the
 * Secret may be created later, and other controllers need no cloud. Without a logger, the error is thrown.
 * @throws SettingsError
 */
export async function connectCloud(
  world: World,
  { url, apiKey, ca, timeoutMs }: CloudSettings,
  registry: Registry,
  { tracer, log }: { readonly tracer?: Tracer | undefined; readonly log?: Logger } = {},
): Promise<CloudClient> {
  // Reads the files of the key and of the certificates, so that problems are reported at startup. Both files are read
  // again for each use, because they may be replaced.
  if (ca !== undefined)
    try {
      new X509Certificate(await readFile(ca));
    } catch (cause) {
      const message = `CLOUD_CA names ${ca}, which cannot be read as certificates (PEM)`;
      throw new SettingsError(message, { cause });
    }
  const key = typeof apiKey === 'string' ? apiKey : () => readKey(apiKey.file);
  if (typeof key === 'function')
    try {
      key();
    } catch (error) {
      if (log === undefined) throw error;
      log.error({ error: messageOf(error) }, 'Cloud cannot be used');
    }
  const record = cloudMetrics(registry);
  return new CloudClient({
    world,
    url,
    apiKey: key,
    timeoutMs,
    userAgent: 'vmwright',
    ...(ca !== undefined && { tls: async () => ({ ca: await readFile(ca, 'utf8') }) }),
    observer: {
      answered: (method, route, code, durationMs) => {
        record(method, route, code, durationMs);
        tracer?.call({
          name: `cloud ${method} ${route}`,
          durationMs,
          isError: !(Number(code) < 400), // true for the code `<error>` (no response), because NaN < 400 is false
          attributes: { 'http.request.method': method, 'url.template': route, 'cloud.code': code },
        });
      },
    },
  });
}

/** Declares the metrics of requests to the cloud. @returns a function that records a request */
export function cloudMetrics(
  registry: Registry,
): (method: string, route: string, code: string, durationMs: number) => void {
  const requests = registry.counter({
    name: 'vmwright_cloud_requests_total',
    help: 'Requests to the private cloud; code is <error> if there was no response.',
    labels: ['method', 'route', 'code'],
  });
  const duration = registry.histogram({
    name: 'vmwright_cloud_request_duration_seconds',
    help: 'Duration of requests to the private cloud.',
    labels: ['method', 'route'],
    buckets: exponentialBuckets(0.001, 2, 15),
  });
  return (method, route, code, durationMs) => {
    requests.with({ method, route, code }).inc();
    duration.with({ method, route }).observe(durationMs / 1000);
  };
}

/** Reads the API key. @throws SettingsError if the file is unreadable or holds no key */
function readKey(file: string): string {
  let key: string;
  try {
    key = readFileSync(file, 'utf8').trim();
  } catch (cause) {
    throw new SettingsError(`CLOUD_API_KEY_FILE names ${file}, which cannot be read`, { cause });
  }
  // A key may contain only printable ASCII characters, and no spaces. The transport would also reject control
  // characters, but with an error that does not mention the key.
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new SettingsError(
    `CLOUD_API_KEY_FILE names ${file}, which is empty or contains characters that a key cannot have; use printable ASCII characters without spaces`,
  );
}
