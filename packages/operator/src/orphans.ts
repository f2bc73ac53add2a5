import {
  type Access,
  Client,
  findOrphans,
  type Kind,
  type Logger,
  Registry,
  removeOrphan,
  type World,
} from '@vmwright/runtime';
import { ageText } from './age.ts';
import { connectCloud } from './cloud.ts';
import { clusterIdOf, NAME } from './declarations.ts';
import { type AuditedResources, auditOrphan } from './garbage.ts';
import type { Settings } from './settings/settings.ts';
import { table } from './table.ts';
import { connectVcenters } from './vcenter/connect.ts';
import { cloudServers } from './vm/gc.ts';
import { VM } from './vm/resource.ts';
import { VmGroup } from './vmgroup/resource.ts';
import { vcenterResources } from './vmgroup/vcenter-resources.ts';

/** An external resource with vmwright's ownership labels. The object that the labels name does not exist. */
export interface OrphanRow {
  /** Kind of the missing object. */
  readonly kind: string;
  readonly id: string;
  readonly what: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly createdAt: Date | undefined;
  /** Why `vmwright orphans --delete` keeps the resource; undefined if the command deletes it. */
  readonly keptBecause?: string | undefined;
}

/** An orphan that can be deleted while the connections to the backends are open. */
export interface Orphan extends OrphanRow {
  /**
   * Reads the resource again, and deletes the resource unless its owner exists or a user took it over.
   * @returns whether the resource was deleted
   */
  remove(): Promise<boolean>;
}

/**
 * Finds all orphans, as garbage collection would find them now, and passes them to `use`.
 *
 * Guarantees: nothing is changed unless `use` calls `remove`. `remove` follows the rules of garbage collection, with
 * one exception: garbage collection must have observed the deletion of the owner. Here, the user's confirmation
 * replaces that observation.
 * @throws SettingsError, and the errors of the API server and the backends
 */
export async function withOrphans(
  world: World,
  access: Access,
  settings: Settings,
  log: Logger,
  signal: AbortSignal,
  use: (orphans: readonly Orphan[]) => Promise<void>,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const client = stack.use(new Client({ world, access, fieldManager: NAME, userAgent: NAME }));
  const cluster = settings.cluster ?? (await clusterIdOf(client));
  const registry = new Registry();
  const all: Orphan[] = [];
  const add = async <T>(kind: Kind, external: AuditedResources<T>, graceMs: number) => {
    const { namespaces } = settings;
    const { orphans, forbidden, isOrphan } = await findOrphans({
      client,
      kind,
      external,
      namespaces,
      signal,
    });
    if (forbidden.length > 0)
      log.warn(
        { namespaces: forbidden.join(', ') },
        `${kind.kind} objects cannot be listed in these namespaces`,
      );
    const onChange = auditOrphan(kind, external, { act: 'delete', reason: 'vmwright orphans --delete' });
    for (const item of orphans)
      all.push({
        ...rowOf(kind, external, item),
        keptBecause: keptBecause(item, external, graceMs, world.now()),
        remove: () =>
          removeOrphan({
            item,
            external,
            signal,
            isRemovable: (newest) => isOrphan(newest) && external.isHeld?.(newest) !== true,
            assertLeader: () => signal.throwIfAborted(),
            onChange: (newest, change) => onChange(newest, change, log),
          }),
      });
  };
  if (settings.cloud !== undefined) {
    const cloud = stack.use(await connectCloud(world, settings.cloud, registry));
    await add(VM, cloudServers(cloud, cluster), settings.cloud.sweepMs);
  }
  if (settings.vsphere !== undefined) {
    const vcenters = stack.use(
      await connectVcenters(world, log, settings.vsphere, registry, () => undefined),
    );
    const resources = vcenterResources(vcenters, { cluster, namespaces: settings.namespaces }, log);
    await add(VmGroup, resources, settings.vsphere.sweepMs);
  }
  await use(all);
}

function rowOf<T>(kind: Kind, external: AuditedResources<T>, item: T): OrphanRow {
  const { uid = '', namespace = '', name = '' } = external.ownerOf(item) ?? {};
  return {
    kind: kind.kind,
    id: external.idOf(item),
    what: external.describe(item),
    namespace,
    name,
    uid,
    createdAt: external.createdAt(item),
  };
}

function keptBecause<T>(
  item: T,
  { isHeld, createdAt }: Pick<AuditedResources<T>, 'isHeld' | 'createdAt'>,
  graceMs: number,
  now: number,
): string | undefined {
  if (isHeld?.(item)) return 'a user moved it or turned it into a template';
  const created = createdAt(item)?.getTime();
  return created !== undefined && now - created < graceMs ? `younger than ${graceMs / 1_000}s` : undefined;
}

/** Formats orphans as a table, oldest first; those of unknown age come last. @param now milliseconds since 1970 */
export function orphanTable(rows: readonly OrphanRow[], now: number): string {
  if (rows.length === 0) return 'No orphans found.';
  const age = ({ createdAt }: OrphanRow) => (createdAt === undefined ? 0 : now - createdAt.getTime());
  return table([
    ['KIND', 'ID', 'RESOURCE', 'OWNER', 'OWNER-UID', 'AGE', 'KEPT-BECAUSE'],
    ...rows
      .toSorted((a, b) => age(b) - age(a))
      .map((row) => [
        ...[row.kind, row.id, row.what, `${row.namespace}/${row.name || '-'}`, row.uid],
        row.createdAt === undefined ? '-' : ageText(age(row)),
        row.keptBecause ?? '',
      ]),
  ]);
}
