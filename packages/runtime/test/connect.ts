import { nodeWorld } from '@vmwright/core';
import { kubeconfigAccess } from '../src/access/kubeconfig.ts';
import { Client, type ClientOptions } from '../src/client/client.ts';

/** Returns a client for a kubeconfig. */
export async function connect(kubeconfig: string, options: Partial<ClientOptions> = {}): Promise<Client> {
  const access = await kubeconfigAccess({ world: nodeWorld, path: kubeconfig });
  return new Client({ world: nodeWorld, access, fieldManager: 'runtime-test', ...options });
}
