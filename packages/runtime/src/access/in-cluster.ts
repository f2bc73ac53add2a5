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
  /** @default where Kubernetes mounts it */
  readonly folder?: string;
}

/** Access as a pod has it, by its service account. Token and authority are read again as they are rotated. */
export async function inClusterAccess(options: InClusterOptions): Promise<Access> {
  const { clock, env = process.env, folder = '/var/run/secrets/kubernetes.io/serviceaccount' } = options;
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) {
    throw new AccessError(
      'not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; give a kubeconfig instead',
    );
  }
  const namespace = await readFile(join(folder, 'namespace'), 'utf8').catch((error) => {
    throw new AccessError(`the pod's service account is not mounted at ${folder}`, { cause: error });
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
