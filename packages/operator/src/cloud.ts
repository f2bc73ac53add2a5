import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { CloudClient } from '@vmwright/cloud';
import { exponentialBuckets, type Registry, type World } from '@vmwright/runtime';
import type { CloudSettings } from './settings/cloud.ts';
import { SettingsError } from './settings/values.ts';

/** The way to the private cloud, with metrics of what is asked of it. @throws SettingsError */
export async function connectCloud(
  world: World,
  { url, apiKey, ca, timeoutMs }: CloudSettings,
  registry: Registry,
): Promise<CloudClient> {
  // Read once at the start, so that what is wrong is told then; and anew for each use, since both may be replaced.
  if (ca !== undefined)
    try {
      new X509Certificate(await readFile(ca));
    } catch (cause) {
      const sentence = `CLOUD_CA names ${ca}, which cannot be read as certificates (PEM)`;
      throw new SettingsError(sentence, { cause });
    }
  const key = typeof apiKey === 'string' ? apiKey : () => keyIn(apiKey.file);
  if (typeof key === 'function') key();
  const requests = registry.counter({
    name: 'vmwright_cloud_requests_total',
    help: 'Requests to the private cloud.',
    labels: ['method', 'route', 'code'],
  });
  const duration = registry.histogram({
    name: 'vmwright_cloud_request_duration_seconds',
    help: 'How long the private cloud takes to answer.',
    labels: ['method', 'route'],
    buckets: exponentialBuckets(0.001, 2, 15),
  });
  return new CloudClient({
    world,
    url,
    apiKey: key,
    timeoutMs,
    userAgent: 'vmwright',
    ...(ca !== undefined && { tls: async () => ({ ca: await readFile(ca, 'utf8') }) }),
    observer: {
      answered: (method, route, code, durationMs) => {
        requests.with({ method, route, code }).inc();
        duration.with({ method, route }).observe(durationMs / 1000);
      },
    },
  });
}

/** @throws SettingsError */
function keyIn(file: string): string {
  let key: string;
  try {
    key = readFileSync(file, 'utf8').trim();
  } catch (cause) {
    throw new SettingsError(`CLOUD_API_KEY_FILE names ${file}, which cannot be read`, { cause });
  }
  // Of what the transport refuses as a header nobody would learn that it is the key.
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new SettingsError(
    `CLOUD_API_KEY_FILE names ${file}, which is empty, or has a space, a line break or a letter in it that no key has`,
  );
}
