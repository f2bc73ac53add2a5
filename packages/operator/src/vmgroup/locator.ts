import { type ReconcileContext, unlessAborted, type World } from '@vmwright/runtime';
import { FaultError, type Ref } from '@vmwright/vsphere';
import { claimFolder, releaseFolder } from './folder.ts';
import { folderProblem } from './folder-path.ts';
import { folderName } from './names.ts';
import { type Placement, VmGroup, type VmGroupStatus } from './resource.ts';
import type { Root } from './root.ts';
import { DEFAULT_FOLDER } from './roots.ts';
import type { Site } from './site.ts';
import type { Sites } from './sites.ts';
import { type Destination, type Target, wantedBy } from './targets.ts';
import { GroupError } from './trouble.ts';

/** The machines of a group are on a vCenter that nobody knows. */
export class ElsewhereError extends GroupError {
  constructor(site: string, vcenterId: string) {
    super({
      reason: 'VcenterChanged',
      message: `vCenter '${site}' is another one than that on which its machines are (${vcenterId}); set its address back, or delete the group with vmwright.dev/deletion-policy=Orphan`,
    });
  }
}

/** Where a group is: the vCenter, what is said about where in it, and the folder that its own is in. */
export interface Location {
  readonly site: Site;
  readonly placement: Placement;
  readonly root: Root;
}

export interface LocatorOptions {
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
export class Locator {
  readonly #options: LocatorOptions;
  /** By the UID of the group. */
  readonly #claimed = new Map<string, Claimed>();

  constructor(options: LocatorOptions) {
    this.#options = options;
  }

  /** @returns undefined while that is not known yet @throws GroupError, VsphereError */
  async locate(
    group: VmGroup,
    { assertLeader, signal }: ReconcileContext<VmGroup>,
  ): Promise<Location | undefined> {
    const site = this.#options.sites.of(group);
    refuseToMove(group);
    const placement = site.placementFor(group);
    assertPlaceable(group, placement);
    const { vcenterId } = group.status ?? {};
    // Before a folder is opened, which may create it: on another vCenter nothing may be changed for this group.
    if (vcenterId !== undefined && !site.roots.isOpen(placement))
      await this.#assertVcenter(site, vcenterId, signal);
    const root = await unlessAborted(site.roots.get(placement, assertLeader), signal);
    if (root !== undefined && vcenterId !== undefined && vcenterId !== root.vcenterId)
      throw new ElsewhereError(site.name, vcenterId);
    if (root === undefined) return undefined;
    await unlessAborted(site.hosts.load(root.hosts()), signal);
    return { site, placement, root };
  }

  /**
   * What the group's clones are made of, and its own folder.
   * @param placed stores where the group is; called before anything is made there
   * @throws GroupError, VsphereError
   */
  async destination(
    group: VmGroup,
    location: Location,
    context: ReconcileContext<VmGroup>,
    placed: () => Promise<unknown>,
  ): Promise<Destination> {
    const { root } = location;
    const target = await this.target(group, location, context.signal);
    const known = this.#claimedBy(group, root);
    if (known !== undefined) return { ...target, folder: known };
    await placed();
    return { ...target, folder: await this.#claim(group, location, context) };
  }

  /** What the group's clones are made of. @throws GroupError, VsphereError */
  target(group: VmGroup, { site, root, placement }: Location, signal: AbortSignal): Promise<Target> {
    return unlessAborted(site.targets.find(root.datacenter, wantedBy(group, placement)), signal);
  }

  /** It is looked for anew. */
  forgetTarget(group: VmGroup, { site, root, placement }: Location): void {
    site.targets.forget(root.datacenter, wantedBy(group, placement));
  }

  /** Gives the folder up. @returns whether it is gone, or not the group's any more */
  async release(
    group: VmGroup,
    { site, root }: Location,
    { assertLeader, signal, event }: ReconcileContext<VmGroup>,
  ): Promise<boolean> {
    const { uid = '' } = group.metadata;
    const name = folderName(group);
    const folder = root.child(name) ?? this.#claimed.get(uid)?.folder;
    if (folder === undefined) return true;
    const released = await site.alone(folderKey(root, name), () =>
      releaseFolder(site.vcenter, folder, uid, { assertLeader, signal }),
    );
    if (released === 'kept')
      event(group, {
        type: 'Normal',
        reason: 'FolderKept',
        note: `the folder '${name}' stays, because others created it or have something in it; one that the operator created is removed once it is empty`,
      });
    return released !== 'inUse';
  }

  /** Nothing is remembered of a group, or of any. */
  forget(group?: VmGroup): void {
    if (group === undefined) this.#claimed.clear();
    else this.#claimed.delete(group.metadata.uid ?? '');
  }

  #claimedBy(group: VmGroup, root: Root): Ref<'Folder'> | undefined {
    const claimed = this.#claimed.get(group.metadata.uid ?? '');
    if (claimed === undefined) return undefined;
    const shown = root.child(folderName(group));
    const isNew = this.#options.world.monotonic() - claimed.at < CLAIMED_MS;
    const isThere = shown === undefined ? isNew : shown.value === claimed.folder.value;
    return isThere ? claimed.folder : undefined;
  }

  async #claim(
    group: VmGroup,
    { site, root }: Location,
    context: ReconcileContext<VmGroup>,
  ): Promise<Ref<'Folder'>> {
    const { world, cluster } = this.#options;
    const { uid = '', namespace = '' } = group.metadata;
    const name = folderName(group);
    const claimant = {
      ...{ cluster, uid, namespace },
      lives: (other: string, where: string) => this.#lives(other, where, context),
    };
    const options = { assertLeader: context.assertLeader, signal: context.signal };
    try {
      const folder = await site.alone(folderKey(root, name), () =>
        claimFolder(site.vcenter, root, name, claimant, options),
      );
      this.#claimed.set(uid, { folder, at: world.monotonic() });
      return folder;
    } catch (error) {
      // A view of a deleted folder stays open and shows nothing.
      const isMissing = error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND';
      if (isMissing && (await site.roots.isGone(root))) site.roots.close(root);
      throw error;
    }
  }

  async #assertVcenter(site: Site, vcenterId: string, signal: AbortSignal): Promise<void> {
    if (site.health.isFailing) throw site.health.outage();
    const { about } = await site.vcenter.about({ signal });
    if (about.instanceUuid !== vcenterId) throw new ElsewhereError(site.name, vcenterId);
  }

  /** Asked of the API server itself: a cache may lack a group that is there. */
  async #lives(
    uid: string,
    namespace: string,
    { client, signal }: ReconcileContext<VmGroup>,
  ): Promise<boolean> {
    const { namespaces } = this.#options;
    if (namespaces !== undefined && !namespaces.includes(namespace)) return true; // nobody here can tell
    for await (const { items } of client.pages(VmGroup, { namespace, metadataOnly: true, signal }))
      if (items.some(({ metadata }) => metadata.uid === uid)) return true;
    return false;
  }
}

/** Under which what is done to a folder is done alone. */
export function folderKey({ folder }: Pick<Root, 'folder'>, name: string): string {
  return `${folder.value}/${name}`;
}

/** The status with where its machines are, which stays. */
export function placed(status: VmGroupStatus, { site, root, placement }: Location): VmGroupStatus {
  const { folder = DEFAULT_FOLDER } = placement;
  const { datacenter, vcenterId } = root;
  const folderId = root.folder.value;
  return { ...status, vcenter: site.name, vcenterId, datacenter: datacenter.name, folder, folderId };
}

/**
 * The API server rejects such a path; an administrator's default, and groups of before, are checked here. A group that is
 * being deleted is not: its machines are there, and its placement cannot be changed.
 * @throws GroupError
 */
export function assertPlaceable(
  { metadata }: Pick<VmGroup, 'metadata'>,
  { folder = DEFAULT_FOLDER }: Placement,
): void {
  if (metadata.deletionTimestamp !== undefined) return;
  const problem = folderProblem(folder);
  if (problem !== undefined)
    throw new GroupError({ reason: 'InvalidPlacement', message: `placement.folder ${problem}` });
}

/** Machines do not move, and what is being deleted is looked for where it is. */
function refuseToMove({ metadata, spec: { placement: asked = {} }, status = {} }: VmGroup): void {
  const { vcenter, datacenter = '', folder = '' } = status;
  if (vcenter === undefined || metadata.deletionTimestamp !== undefined) return;
  // By what the group itself says: a default that has changed since is for groups that come.
  const hasMoved =
    vcenter !== (asked.vcenter ?? vcenter) ||
    bare(datacenter) !== bare(asked.datacenter ?? datacenter) ||
    bare(folder) !== bare(asked.folder ?? folder);
  if (!hasMoved) return;
  throw new GroupError({
    reason: 'PlacementChanged',
    message: `its machines are on vCenter '${vcenter}' in '${datacenter}/${folder}' and do not move; set the placement back, or delete the group and create another`,
  });
}

/** `/DC1` is the same as `DC1`. */
function bare(path: string): string {
  return path.replace(/^\/+|\/+$/g, '');
}
