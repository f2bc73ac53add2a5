import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeWorld, type World } from '@vmwright/core';
import { type Cluster, temporaryFolder } from '@vmwright/testbed';
import { kubeconfigAccess } from '../src/access/kubeconfig.ts';
import { Client } from '../src/client/client.ts';

/** Fields of the only user and the only cluster of a kubeconfig. */
export interface KubeconfigParts {
  readonly user?: object;
  /** @default the cluster's CA */
  readonly cluster?: object;
}

/** Writes a kubeconfig for a cluster to a temporary directory and returns its path. */
export async function kubeconfigWith(
  { access }: Pick<Cluster, 'access'>,
  { user = {}, cluster }: KubeconfigParts,
): Promise<string> {
  const path = join(await temporaryFolder('access'), 'config');
  const authority = { 'certificate-authority-data': Buffer.from(access.ca).toString('base64') };
  const config = {
    clusters: [{ name: 'here', cluster: { server: access.server, ...(cluster ?? authority) } }],
    users: [{ name: 'me', user }],
    contexts: [{ name: 'main', context: { cluster: 'here', user: 'me' } }],
    'current-context': 'main',
  };
  await writeFile(path, JSON.stringify(config));
  return path;
}

export async function clientOf(path: string, world: World = nodeWorld): Promise<Client> {
  return new Client({
    world,
    access: await kubeconfigAccess({ world, path }),
    fieldManager: 'access-test',
    timeoutMs: 20_000,
  });
}

/** Returns `nodeWorld` with a wall clock that advances only when `pass` is called. */
export function worldWithClock(): World & { pass(ms: number): void } {
  let now = Date.now();
  return {
    ...nodeWorld,
    now: () => now,
    pass: (ms) => {
      now += ms;
    },
  };
}
