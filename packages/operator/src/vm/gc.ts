import type { CloudClient, Server } from '@vmwright/cloud';
import { collectGarbage, type Manager } from '@vmwright/runtime';
import { type AuditedResources, auditCollected, GARBAGE, type GarbageOptions } from '../garbage.ts';
import { ignoreNotFound, isAccepted, toReconcileError } from './errors.ts';
import { clusterLabels, nameOf, namespaceOf, ownerUid } from './identity.ts';
import { VM } from './resource.ts';

export interface VmGarbageOptions extends GarbageOptions {
  readonly cloud: CloudClient;
  /** Id of this cluster in the ownership labels. */
  readonly cluster: string;
}

/** Deletes servers that were created after their VM was deleted, and reports other servers without a VM. */
export function collectVmGarbage(manager: Manager, { cloud, cluster, ...options }: VmGarbageOptions): void {
  const external = cloudServers(cloud, cluster);
  collectGarbage(manager, {
    ...options,
    ...GARBAGE,
    name: 'vm-gc',
    metricPrefix: 'vmwright_vm',
    kind: VM,
    external,
    onChange: auditCollected(VM, external),
  });
}

/** Returns access to the servers that carry this cluster's ownership labels. */
export function cloudServers(cloud: CloudClient, cluster: string): AuditedResources<Server> {
  return {
    list: async (signal) => {
      const servers: Server[] = [];
      try {
        for await (const page of cloud.list({ labels: clusterLabels(cluster), signal }))
          servers.push(...page);
      } catch (error) {
        throw toReconcileError(error);
      }
      return servers;
    },
    idOf: ({ id }) => id,
    auditOf: ({ id, name }) => ({ resource: 'Server', machine: id, machineName: name }),
    describe: ({ name }) => `server '${name}'`,
    createdAt: ({ createdAt }) => new Date(createdAt),
    ownerOf: (server) => {
      const uid = ownerUid(server);
      return uid === undefined || server.state === 'deleting'
        ? undefined
        : { uid, namespace: namespaceOf(server), name: nameOf(server) };
    },
    refetch: ({ id }, signal) => ignoreNotFound(cloud.get(id, { signal })),
    remove: async ({ id }, { onChange, ...scope }) => {
      if (await isAccepted(cloud.scoped(scope).delete(id))) onChange({ type: 'delete' });
    },
  };
}
