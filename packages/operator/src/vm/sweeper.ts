import type { CloudClient, Server } from '@vmwright/cloud';
import type { JobOptions } from '@vmwright/runtime';
import { marksOfAll } from './marks.ts';
import { strangers } from './plan.ts';
import { VM } from './resource.ts';
import { unlessGone } from './unless-gone.ts';

export interface SweeperOptions {
  readonly cloud: CloudClient;
  readonly cluster: string;
  readonly everyMs: number;
  /** Those we look at. @default all */
  readonly namespaces?: readonly string[] | undefined;
}

/**
 * Removes machines that were made for an object that is gone: a request to create one can reach the cloud after the
 * object's deletion, when nobody waits for it any more.
 */
export function sweeper({ cloud, cluster, everyMs, namespaces }: SweeperOptions): JobOptions {
  return {
    name: 'vm-sweeper',
    everyMs,
    reads: [VM],
    run: async ({ client, cache, signal, log, assertMayAct }) => {
      const servers: Server[] = [];
      for await (const page of cloud.list({ labels: marksOfAll(cluster), signal })) servers.push(...page);
      // The cache knows most owners, and so spares a list. It never decides: it may lack an object that is there.
      const suspects = strangers(servers, new Set(uidsOf(cache(VM).list())), namespaces);
      if (suspects.length === 0) return;
      const uids = new Set<string>();
      for (const namespace of namespaces ?? [undefined])
        for await (const { items } of client.pages(VM, { namespace, metadataOnly: true, signal }))
          for (const uid of uidsOf(items)) uids.add(uid);
      const ours = cloud.scoped({ signal, allow: assertMayAct });
      for (const { id, name } of strangers(suspects, uids, namespaces)) {
        // As it is now: since it was listed it may have been let go of (Orphan), and its object with it.
        const server = await unlessGone(ours.get(id));
        if (server === undefined || strangers([server], uids, namespaces).length === 0) continue;
        log.info({ server: id, vmname: name }, 'a machine without a VM is removed');
        await unlessGone(ours.delete(id));
      }
    },
  };
}

function* uidsOf(objects: Iterable<Pick<VM, 'metadata'>>): Generator<string, void, undefined> {
  for (const { metadata } of objects) yield metadata.uid ?? '';
}
