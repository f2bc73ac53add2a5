import type { CloudClient, Server } from '@vmwright/cloud';
import type { JobOptions } from '@vmwright/runtime';
import { type SweepOptions, sweep } from '../sweep.ts';
import { marksOfAll, namespaceOf, ownerOf } from './marks.ts';
import { VM } from './resource.ts';
import { unlessGone } from './unless-gone.ts';

export interface SweeperOptions extends Omit<SweepOptions<Server>, 'name' | 'kind' | 'outside'> {
  readonly cloud: CloudClient;
  readonly cluster: string;
}

/** Removes machines of the cloud that were made for a VM that is gone. */
export function sweeper({ cloud, cluster, ...options }: SweeperOptions): JobOptions {
  return sweep<Server>({
    ...options,
    name: 'vm',
    kind: VM,
    outside: {
      list: async (signal) => {
        const servers: Server[] = [];
        for await (const page of cloud.list({ labels: marksOfAll(cluster), signal })) servers.push(...page);
        return servers;
      },
      idOf: ({ id }) => id,
      ownerOf: (server) => {
        const uid = ownerOf(server);
        return uid === undefined || server.state === 'deleting'
          ? undefined
          : { uid, namespace: namespaceOf(server) };
      },
      again: ({ id }, signal) => unlessGone(cloud.get(id, { signal })),
      remove: async ({ id }, scope) => {
        await unlessGone(cloud.scoped(scope).delete(id));
      },
    },
  });
}
