import { readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '@vmwright/core';
import { type Access, AccessError } from './access.ts';
import { rotatedFile, tokenFile } from './files.ts';

export interface InClusterOptions {
  readonly clock: Clock;
  /** @default process.env */
  readonly env?: NodeJS.ProcessEnv;
  /** Directory of the mounted service account. @default '/var/run/secrets/kubernetes.io/serviceaccount' */
  readonly folder?: string;
}

/**
 * Access with the service account of the pod that this program runs in. Uses the new token and CA after a rotation.
 * @throws AccessError outside of a pod, or without a mounted service account
 */
export async function inClusterAccess(options: InClusterOptions): Promise<Access> {
  const { clock, env = process.env, folder = '/var/run/secrets/kubernetes.io/serviceaccount' } = options;
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) {
    throw new AccessError(
      'not running in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; use a kubeconfig instead',
    );
  }
  const namespace = await readFile(join(folder, 'namespace'), 'utf8').catch((error) => {
    throw new AccessError(`no service account is mounted at ${folder}; enable automountServiceAccountToken`, {
      cause: error,
    });
  });
  const ca = rotatedFile(join(folder, 'ca.crt'));
  return {
    server: {
      origin: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
      tls: async () => ({ ca: await ca() }),
    },
    credentials: tokenFile(clock, join(folder, 'token')),
    namespace: namespace.trim(),
  };
}
