import { type ReconcileContext, unlessAborted, type World } from '@vmwright/runtime';
import type { ChangeOptions, Ref } from '@vmwright/vsphere';
import { claimFolder, releaseFolder } from './folder.ts';
import { folderName } from './names.ts';
import { type Placement, VmGroup, type VmGroupStatus } from './resource.ts';
import type { Root } from './root.ts';
import { DEFAULT_FOLDER, type Site, type Target } from './site.ts';
import type { Sites } from './sites.ts';
import { GroupError } from './trouble.ts';

/** Where a group is: the vCenter, what is said about where in it, and the folder that its own is in. */
export interface Here {
  readonly site: Site;
  readonly placement: Placement;
  readonly root: Root;
}

export interface WhereaboutsOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly sites: Sites;
  /** Marks what is ours. */
  readonly cluster: string;
  /** Those we look at. @default all */
  readonly namespaces?: readonly string[] | undefined;
}

interface Claimed {
  readonly folder: Ref<'Folder'>;
  readonly at: number;
}

/** A folder that was just claimed may not show yet. */
const CLAIMED_MS = 10_000;

/** Finds where groups are, and sees to it that each has a folder of its own. */
export class Whereabouts {
  readonly #options: WhereaboutsOptions;
  /** By the UID of the group. */
  readonly #claimed = new Map<string, Claimed>();

  constructor(options: WhereaboutsOptions) {
    this.#options = options;
  }

  /** @throws GroupError, VsphereError */
  async locate(group: VmGroup, { assertMayAct, signal }: ReconcileContext<VmGroup>): Promise<Here> {
    const site = this.#options.sites.of(group);
    const wanted = site.placementOf(group.spec.placement);
    refuseToMove(group, wanted);
    const { datacenter, folder } = group.status ?? {};
    const placement = {
      ...wanted,
      ...(datacenter !== undefined && { datacenter }),
      ...(folder !== undefined && { folder }),
    };
    const root = await unlessAborted(site.root(placement, assertMayAct), signal);
    await unlessAborted(site.learnHosts(root.hosts()), signal);
    return { site, placement, root };
  }

  /** What its clones are made of and go to. @throws GroupError, VsphereError */
  target(
    { spec: { template, linked = false } }: VmGroup,
    { site, root, placement }: Here,
    signal: AbortSignal,
  ): Promise<Target> {
    return unlessAborted(site.target(root.datacenter, placement, template, linked), signal);
  }

  /** The group's own folder, where it is known to have it. */
  claimed(group: VmGroup, { root }: Here): Ref<'Folder'> | undefined {
    const claimed = this.#claimed.get(group.metadata.uid ?? '');
    if (claimed === undefined) return undefined;
    const shown = root.child(folderName(group));
    const isNew = this.#options.world.monotonic() - claimed.at < CLAIMED_MS;
    const isThere = shown === undefined ? isNew : shown.value === claimed.folder.value;
    return isThere ? claimed.folder : undefined;
  }

  /** Makes the folder the group's. @throws GroupError where it is another's, VsphereError */
  async claim(
    group: VmGroup,
    { site, root }: Here,
    context: ReconcileContext<VmGroup>,
  ): Promise<Ref<'Folder'>> {
    const { world, cluster } = this.#options;
    const { uid = '' } = group.metadata;
    const name = folderName(group);
    const claim = {
      ...{ vcenter: site.vcenter, root, name, owner: { cluster, uid } },
      lives: (other: string) => this.#lives(other, context),
    };
    const options = { allow: context.assertMayAct };
    const folder = await site.alone(`${root.folder.value}/${name}`, () => claimFolder(claim, options));
    this.#claimed.set(uid, { folder, at: world.monotonic() });
    return folder;
  }

  /** Gives the folder up. @returns whether it is gone, or not the group's any more */
  async release(group: VmGroup, { site, root }: Here, options: ChangeOptions): Promise<boolean> {
    const { cluster } = this.#options;
    const { uid = '' } = group.metadata;
    const name = folderName(group);
    const folder = root.child(name) ?? this.#claimed.get(uid)?.folder;
    if (folder === undefined) return true;
    return site.alone(`${root.folder.value}/${name}`, () =>
      releaseFolder(site.vcenter, folder, { cluster, uid }, options),
    );
  }

  /** Nothing is remembered of a group, or of any. */
  forget(group?: VmGroup): void {
    if (group === undefined) this.#claimed.clear();
    else this.#claimed.delete(group.metadata.uid ?? '');
  }

  /** Asked of the API server itself: a cache may lack a group that is there. */
  async #lives(uid: string, { client, signal }: ReconcileContext<VmGroup>): Promise<boolean> {
    if (this.#options.namespaces !== undefined) return true; // it may be in one that we do not see
    for await (const { items } of client.pages(VmGroup, { metadataOnly: true, signal }))
      if (items.some(({ metadata }) => metadata.uid === uid)) return true;
    return false;
  }
}

/** The status with where its machines are, which stays. */
export function placed(status: VmGroupStatus, { site, root, placement }: Here): VmGroupStatus {
  const { folder = DEFAULT_FOLDER } = placement;
  return { ...status, vcenter: site.name, datacenter: root.datacenter.name, folder };
}

/** Machines do not move, and what is being deleted is looked for where it is. */
function refuseToMove({ metadata, spec, status = {} }: VmGroup, wanted: Placement): void {
  const { vcenter, datacenter, folder } = status;
  if (vcenter === undefined || metadata.deletionTimestamp !== undefined) return;
  const hasMoved =
    vcenter !== (spec.placement?.vcenter ?? vcenter) ||
    datacenter !== (wanted.datacenter ?? datacenter) ||
    folder !== (wanted.folder ?? DEFAULT_FOLDER);
  if (!hasMoved) return;
  throw new GroupError({
    reason: 'PlacementChanged',
    message: `its machines are on vCenter '${vcenter}' in '${datacenter}/${folder}' and do not move; set the placement back, or delete the group and create another`,
  });
}
