import { readFile } from 'node:fs/promises';
import { CloudClient } from '@vmwright/cloud';
import { exponentialBuckets, type Registry, type World } from '@vmwright/runtime';
import { type CloudSettings, SettingsError } from './settings/settings.ts';

/** The way to the private cloud, with metrics of what is asked of it. @throws SettingsError */
export async function connectCloud(
  world: World,
  { url, apiKey, ca, timeoutMs }: CloudSettings,
  registry: Registry,
): Promise<CloudClient> {
  // Read once at the start, so that a wrong path is told then; and for each connection, since it may be replaced.
  if (ca !== undefined)
    await readFile(ca).catch((cause) => {
      throw new SettingsError(
        `CLOUD_CA names ${ca}, which cannot be read; it is a file with certificates (PEM)`,
        { cause },
      );
    });
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
    apiKey,
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
