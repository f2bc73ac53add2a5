import type { CloudClient, Server } from '@vmwright/cloud';
import type { JobOptions, Registry, World } from '@vmwright/runtime';
import { marksOfAll } from './marks.ts';
import { strangers } from './plan.ts';
import { VM } from './resource.ts';
import { unlessGone } from './unless-gone.ts';

export interface SweeperOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly cloud: CloudClient;
  readonly cluster: string;
  readonly everyMs: number;
  /** For how long a machine must have been nobody's. */
  readonly graceMs: number;
  /** Those we look at. @default all */
  readonly namespaces?: readonly string[] | undefined;
  readonly registry: Registry;
}

/**
 * So many at once are not what was created late, but a cluster that has forgotten: restored from a backup, or built anew
 * under its old name. Its machines are somebody's.
 */
const SUSPICIOUSLY_MANY = 10;

/**
 * Removes machines that were made for an object that is gone: a request to create one can reach the cloud after the
 * object's deletion, when nobody waits for it any more.
 */
export function sweeper(options: SweeperOptions): JobOptions {
  const { world, cloud, cluster, everyMs, graceMs, namespaces, registry } = options;
  const orphans = registry
    .gauge({
      name: 'vmwright_vm_orphans',
      help: 'Machines with our mark that belong to no VM, as last seen.',
    })
    .with({});
  const swept = registry
    .counter({ name: 'vmwright_vm_swept_total', help: 'Machines that belonged to no VM and were removed.' })
    .with({});
  /** Since when each was nobody's, by its id. */
  let since = new Map<string, number>();
  return {
    name: 'vm-sweeper',
    everyMs,
    reads: [VM],
    run: async ({ client, cache, signal, log, assertMayAct }) => {
      const servers: Server[] = [];
      for await (const page of cloud.list({ labels: marksOfAll(cluster), signal })) servers.push(...page);
      // The cache knows most owners, and so spares a list. It never decides: it may lack an object that is there.
      const suspects = strangers(servers, new Set(uidsOf(cache(VM).list())), namespaces);
      const uids = new Set<string>();
      if (suspects.length > 0)
        for (const namespace of namespaces ?? [undefined])
          for await (const { items } of client.pages(VM, { namespace, metadataOnly: true, signal }))
            for (const uid of uidsOf(items)) uids.add(uid);
      const found = strangers(suspects, uids, namespaces);
      orphans.set(found.length);
      const now = world.monotonic();
      since = new Map(found.map(({ id }) => [id, since.get(id) ?? now]));
      const due = found.filter(({ id }) => now - (since.get(id) ?? now) >= graceMs);
      if (due.length > SUSPICIOUSLY_MANY && due.length > servers.length / 2) {
        log.error(
          { orphans: due.length, machines: servers.length },
          'most machines belong to no VM; none is removed, for this cluster may have been restored or built anew. Those that nobody wants are to be deleted in the cloud',
        );
        return;
      }
      const ours = cloud.scoped({ signal, allow: assertMayAct });
      for (const { id, name } of due) {
        // As it is now: since it was listed it may have been let go of (Orphan), and its object with it.
        const server = await unlessGone(ours.get(id));
        if (server === undefined || strangers([server], uids, namespaces).length === 0) continue;
        log.warn({ server: id, vmname: name }, 'a machine without a VM is removed');
        await unlessGone(ours.delete(id));
        swept.inc();
      }
    },
  };
}

function* uidsOf(objects: Iterable<Pick<VM, 'metadata'>>): Generator<string, void, undefined> {
  for (const { metadata } of objects) yield metadata.uid ?? '';
}
