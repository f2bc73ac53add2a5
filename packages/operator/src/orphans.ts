import type { ExternalResources } from '@vmwright/runtime';
import {
  type Access,
  Client,
  findOrphans,
  type Kind,
  type Logger,
  Registry,
  type World,
} from '@vmwright/runtime';
import { connectCloud } from './cloud.ts';
import { clusterIdOf, NAME } from './declarations.ts';
import type { Settings } from './settings/settings.ts';
import { connectVcenters } from './vcenter/connect.ts';
import { cloudServers } from './vm/gc.ts';
import { VM } from './vm/resource.ts';
import { VmGroup } from './vmgroup/resource.ts';
import { vcenterResources } from './vmgroup/vcenter-resources.ts';

/** An external resource with our ownership labels whose object does not exist. */
export interface OrphanRow {
  /** Kind of the missing object. */
  readonly kind: string;
  readonly id: string;
  readonly what: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly createdAt: Date | undefined;
}

/**
 * Lists all orphans, as garbage collection would find them now. Changes nothing.
 * @throws SettingsError, and the errors of the API server and the backends
 */
export async function listOrphans(
  world: World,
  access: Access,
  settings: Settings,
  log: Logger,
  signal: AbortSignal,
): Promise<readonly OrphanRow[]> {
  await using stack = new AsyncDisposableStack();
  const client = stack.use(new Client({ world, access, fieldManager: NAME, userAgent: NAME }));
  const cluster = settings.cluster ?? (await clusterIdOf(client));
  const registry = new Registry();
  const rows: OrphanRow[] = [];
  const add = async <T>(kind: Kind, external: ExternalResources<T>) => {
    const { namespaces } = settings;
    const { orphans, forbidden } = await findOrphans({ client, kind, external, namespaces, signal });
    if (forbidden.length > 0)
      log.warn(
        { namespaces: forbidden.join(', ') },
        `${kind.kind} objects cannot be listed in these namespaces`,
      );
    for (const item of orphans) {
      const { uid = '', namespace = '', name = '' } = external.ownerOf(item) ?? {};
      const id = external.idOf(item);
      const createdAt = external.createdAt(item);
      rows.push({
        ...{ kind: kind.kind, id, namespace, name, uid, createdAt },
        what: external.describe(item),
      });
    }
  };
  if (settings.cloud !== undefined) {
    const cloud = stack.use(await connectCloud(world, settings.cloud, registry));
    await add(VM, cloudServers(cloud, cluster));
  }
  if (settings.vsphere !== undefined) {
    const vcenters = stack.use(
      await connectVcenters(world, log, settings.vsphere, registry, () => undefined),
    );
    await add(VmGroup, vcenterResources(vcenters, cluster, log));
  }
  return rows;
}

/** Formats orphans as a table, oldest first; those of unknown age come last. @param now milliseconds since 1970 */
export function orphanTable(rows: readonly OrphanRow[], now: number): string {
  if (rows.length === 0) return 'No orphans found.';
  const age = ({ createdAt }: OrphanRow) => (createdAt === undefined ? 0 : now - createdAt.getTime());
  const cells = [
    ['KIND', 'ID', 'RESOURCE', 'OWNER', 'OWNER-UID', 'AGE'],
    ...rows
      .toSorted((a, b) => age(b) - age(a))
      .map((row) => [
        ...[row.kind, row.id, row.what, `${row.namespace}/${row.name || '-'}`, row.uid],
        row.createdAt === undefined ? '-' : ageText(age(row)),
      ]),
  ];
  const widths = cells.reduce<readonly number[]>(
    (widest, line) => line.map((cell, index) => Math.max(cell.length, widest[index] ?? 0)),
    [],
  );
  return cells
    .map((line) =>
      line
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('   ')
        .trimEnd(),
    )
    .join('\n');
}

/** Formats an age like `kubectl`: in the largest whole unit. */
function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
