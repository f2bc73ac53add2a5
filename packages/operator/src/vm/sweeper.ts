import type { CloudClient, Server } from '@vmwright/cloud';
import type { Manager } from '@vmwright/runtime';
import { type CollectorOptions, collectGarbage } from '../gc/collector.ts';
import type { ExternalResources } from '../gc/external.ts';
import { marksOfAll, nameOf, namespaceOf, ownerOf } from './marks.ts';
import { VM } from './resource.ts';
import { asFailure } from './trouble.ts';
import { unlessGone } from './unless-gone.ts';

export interface SweeperOptions extends Omit<CollectorOptions<Server>, 'name' | 'kind' | 'external'> {
  readonly cloud: CloudClient;
  readonly cluster: string;
}

/** Deletes servers of the cloud that were created after their VM was deleted, and reports others without a VM. */
export function sweepVms(manager: Manager, { cloud, cluster, ...options }: SweeperOptions): void {
  collectGarbage(manager, { ...options, name: 'vm', kind: VM, external: cloudServers(cloud, cluster) });
}

/** The servers that carry this cluster's ownership labels. */
export function cloudServers(cloud: CloudClient, cluster: string): ExternalResources<Server> {
  return {
    list: async (signal) => {
      const servers: Server[] = [];
      try {
        for await (const page of cloud.list({ labels: marksOfAll(cluster), signal })) servers.push(...page);
      } catch (error) {
        throw asFailure(error);
      }
      return servers;
    },
    idOf: ({ id }) => id,
    describe: ({ name }) => `server '${name}'`,
    createdAt: ({ createdAt }) => new Date(createdAt),
    ownerOf: (server) => {
      const uid = ownerOf(server);
      return uid === undefined || server.state === 'deleting'
        ? undefined
        : { uid, namespace: namespaceOf(server), name: nameOf(server) };
    },
    refetch: ({ id }, signal) => unlessGone(cloud.get(id, { signal })),
    remove: async ({ id }, scope) => {
      await unlessGone(cloud.scoped(scope).delete(id));
    },
  };
}
