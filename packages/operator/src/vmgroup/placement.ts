import { type ReconcileContext, unlessAborted, type World } from '@vmwright/runtime';
import { FaultError, type Ref } from '@vmwright/vsphere';
import { ReportedError } from '../vcenter/errors.ts';
import { DEFAULT_FOLDER, type FolderPlacement, type Placement } from '../vcenter/placement.ts';
import type { VCenter } from '../vcenter/vcenter.ts';
import type { VCenterPool } from '../vcenter/vcenter-pool.ts';
import type { WatchedFolder } from '../vcenter/watched-folder.ts';
import { type CloneTarget, CloneTargetCache, cloneRequestOf } from './clone-targets.ts';
import { OtherVcenterError } from './errors.ts';
import { folderProblem } from './folder-path.ts';
import { claimFolder, type FolderRelease, releaseFolder } from './folders.ts';
import type { GroupInFlight } from './group-in-flight.ts';
import { folderName, provisionalFolderName } from './identity.ts';
import { VmGroup, type VmGroupStatus } from './resource.ts';

/** Where the machines of a group are. */
export interface Location {
  readonly vcenter: VCenter;
  readonly placement: Placement & FolderPlacement;
  /** The watched folder that contains the group's own folder. */
  readonly watched: WatchedFolder;
}

export interface PlacementResolverOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly vcenters: VCenterPool;
  /** Id of this cluster in the ownership labels. */
  readonly cluster: string;
  /** Namespaces that the operator watches. @default all */
  readonly namespaces?: readonly string[] | undefined;
}

/**
 * Returns the vCenter that holds the group's machines. Before the group is placed, returns the vCenter that its spec or
 * namespace selects.
 */
export function vcenterOf(vcenters: VCenterPool, group: VmGroup): VCenter | undefined {
  return vcenters.find(requestOf(group));
}

/**
 * Returns the placement of a group's machines. Once they are placed, datacenter and folder come from the status. All
 * other fields come from the spec, or from the defaults of the vCenter.
 */
function placementOf(vcenter: VCenter, { spec, status }: VmGroup): Placement & FolderPlacement {
  const { datacenter, folder, folderId } = status ?? {};
  return {
    ...vcenter.withDefaults(spec.placement),
    ...(datacenter !== undefined && { datacenter }),
    ...(folder !== undefined && { folder }),
    ...(folderId !== undefined && { folderId }),
  };
}

/** Closes the watched folders that none of these groups has used for a minute. */
export function closeUnusedFolders(vcenters: VCenterPool, groups: Iterable<VmGroup>): void {
  const used = new Map<VCenter, FolderPlacement[]>();
  for (const vcenter of vcenters) used.set(vcenter, []);
  for (const group of groups) {
    const vcenter = vcenterOf(vcenters, group);
    if (vcenter !== undefined) used.get(vcenter)?.push(placementOf(vcenter, group));
  }
  for (const [vcenter, placements] of used) vcenter.folders.closeUnused(placements);
}

/** Resolves the names in a group's placement to vCenter objects, and claims the group's folder. */
export class PlacementResolver {
  readonly #options: PlacementResolverOptions;
  readonly #targets = new Map<VCenter, CloneTargetCache>();

  constructor(options: PlacementResolverOptions) {
    this.#options = options;
  }

  /**
   * Returns the location of a group; undefined while its watched folder is being opened.
   * @throws ReportedError, VsphereError, VcenterOutageError
   */
  async locate(
    group: VmGroup,
    { assertLeader, signal }: ReconcileContext<VmGroup>,
  ): Promise<Location | undefined> {
    const vcenter = this.#options.vcenters.get(requestOf(group));
    assertNotMoved(group);
    const placement = placementOf(vcenter, group);
    assertPlaceable(group, placement);
    const { vcenterId } = group.status ?? {};
    // The vCenter is checked before the folder is opened. Opening may create the folder, and the operator must not
    // change another vCenter than the one in the status.
    if (vcenterId !== undefined && !vcenter.folders.isOpen(placement))
      await this.#assertVcenter(vcenter, vcenterId, signal);
    const watched = await unlessAborted(vcenter.folders.get(placement, assertLeader), signal);
    if (watched === undefined) return undefined;
    if (vcenterId !== undefined && vcenterId !== watched.vcenterId)
      throw new OtherVcenterError(vcenter.name, vcenterId);
    await unlessAborted(vcenter.hosts.load(watched.hosts()), signal);
    return { vcenter, placement, watched };
  }

  /** Returns the template and the destination of the group's clones. @throws ReportedError, VsphereError */
  target(group: VmGroup, location: Location, signal: AbortSignal): Promise<CloneTarget> {
    const { watched, placement } = location;
    const request = cloneRequestOf(group, placement);
    return unlessAborted(this.#targetsOn(location).find(watched.datacenter, request), signal);
  }

  /** Drops the group's clone target from the cache, so that it is looked up again. */
  evictTarget(group: VmGroup, location: Location): void {
    const { watched, placement } = location;
    this.#targetsOn(location).evict(watched.datacenter, cloneRequestOf(group, placement));
  }

  /**
   * Creates the group's folder if it is missing, and records the group as its owner.
   * @throws ReportedError, VsphereError
   */
  async claimFolder(
    group: VmGroup,
    { vcenter, watched }: Location,
    state: GroupInFlight,
    context: ReconcileContext<VmGroup>,
  ): Promise<void> {
    const { cluster } = this.#options;
    const { uid = '', namespace = '' } = group.metadata;
    const { assertLeader, signal } = context;
    const name = folderName(group);
    const claimant = {
      cluster,
      uid,
      namespace,
      groupExists: (other: string, where: string) => this.#groupExists(other, where, context),
    };
    try {
      const folder = await vcenter.withLock(folderLock(watched.ref, name), () =>
        claimFolder(vcenter.client, watched, name, claimant, { assertLeader, signal }),
      );
      state.folderClaimed(folder);
    } catch (error) {
      // If the watched folder was deleted, its watch is closed. The next reconcile opens a new watch.
      const isMissing = error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND';
      if (isMissing && (await vcenter.folders.isGone(watched))) vcenter.folders.close(watched);
      throw error;
    }
  }

  /** Releases the group's folder. @returns false while machines of the group are in it */
  async releaseFolder(
    group: VmGroup,
    { vcenter, watched }: Location,
    state: GroupInFlight,
    { assertLeader, signal, event }: ReconcileContext<VmGroup>,
  ): Promise<boolean> {
    const { cluster } = this.#options;
    const { uid = '', namespace = '' } = group.metadata;
    const name = folderName(group);
    const leftover = watched.child(provisionalFolderName({ cluster, namespace, uid }));
    const folders = [watched.child(name) ?? state.lastClaimedFolder ?? [], leftover ?? []].flat();
    const scope = { cluster, namespaces: [namespace] };
    const releases = await vcenter.withLock(folderLock(watched.ref, name), async () => {
      const states: FolderRelease[] = [];
      for (const folder of folders)
        states.push(await releaseFolder(vcenter.client, folder, uid, scope, { assertLeader, signal }));
      return states;
    });
    if (releases.includes('kept'))
      event(group, {
        type: 'Normal',
        reason: 'FolderKept',
        note: `the folder '${name}' stays, because other users created it or have objects in it; a folder that the operator created is removed once it is empty`,
      });
    return !releases.includes('inUse');
  }

  #targetsOn({ vcenter }: Location): CloneTargetCache {
    const { world } = this.#options;
    const cache =
      this.#targets.get(vcenter) ?? new CloneTargetCache(world, vcenter.client, vcenter.templates);
    this.#targets.set(vcenter, cache);
    return cache;
  }

  async #assertVcenter(vcenter: VCenter, vcenterId: string, signal: AbortSignal): Promise<void> {
    if (vcenter.health.isFailing) throw vcenter.health.outage();
    const { about } = await vcenter.client.about({ signal });
    if (about.instanceUuid !== vcenterId) throw new OtherVcenterError(vcenter.name, vcenterId);
  }

  /**
   * Returns false only if the group certainly does not exist. Lists from the API server, because a cache may lack the
   * group.
   */
  async #groupExists(
    uid: string,
    namespace: string,
    { client, signal }: ReconcileContext<VmGroup>,
  ): Promise<boolean> {
    const { namespaces } = this.#options;
    // The operator may lack permission to list a namespace that it does not watch, so the group is assumed to exist.
    if (namespaces !== undefined && !namespaces.includes(namespace)) return true;
    for await (const { items } of client.pages(VmGroup, { namespace, metadataOnly: true, signal }))
      if (items.some(({ metadata }) => metadata.uid === uid)) return true;
    return false;
  }
}

/** Name of the lock under which a group's folder is claimed or released. */
export function folderLock(parent: Ref<'Folder'>, name: string): string {
  return `${parent.value}/${name}`;
}

/** Returns the status with the location of the group's machines, which never changes. */
export function withPlacement(
  status: VmGroupStatus,
  { vcenter, watched, placement }: Location,
): VmGroupStatus {
  const { folder = DEFAULT_FOLDER } = placement;
  const { datacenter, vcenterId, ref } = watched;
  return {
    ...status,
    vcenter: vcenter.name,
    vcenterId,
    datacenter: datacenter.name,
    folder,
    folderId: ref.value,
  };
}

function requestOf({ metadata: { namespace = '' }, spec, status }: VmGroup) {
  return { namespace, name: status?.vcenter ?? spec.placement?.vcenter };
}

/**
 * Checks folders that the API server has not validated: the default folder in the configuration, and folders of groups
 * that are older than the CEL rules. Groups that are being deleted are not checked, because their machines exist and
 * their placement is immutable.
 * @throws ReportedError
 */
export function assertPlaceable(
  { metadata }: Pick<VmGroup, 'metadata'>,
  { folder = DEFAULT_FOLDER }: FolderPlacement,
): void {
  if (metadata.deletionTimestamp !== undefined) return;
  const problem = folderProblem(folder);
  if (problem !== undefined)
    throw new ReportedError({
      reason: 'InvalidPlacement',
      message: `placement.folder ${problem}; correct it in the spec of the group, or in the operator's defaults`,
    });
}

/**
 * Rejects a changed placement, because machines do not move. Groups that are being deleted are not checked, because the
 * placement in the status leads to their machines.
 */
function assertNotMoved({ metadata, spec: { placement = {} }, status = {} }: VmGroup): void {
  const { vcenter, datacenter = '', folder = '' } = status;
  if (vcenter === undefined || metadata.deletionTimestamp !== undefined) return;
  // Fields that the spec does not set are not compared, because a changed default applies only to new groups.
  const isMoved =
    vcenter !== (placement.vcenter ?? vcenter) ||
    trimmed(datacenter) !== trimmed(placement.datacenter ?? datacenter) ||
    trimmed(folder) !== trimmed(placement.folder ?? folder);
  if (!isMoved) return;
  throw new ReportedError({
    reason: 'PlacementChanged',
    message: `the machines are on vCenter '${vcenter}' in '${datacenter}/${folder}' and do not move, but spec.placement names another place; delete the group and create another`,
  });
}

/** Normalises a path: `/DC1` means the same as `DC1`. */
function trimmed(path: string): string {
  return path.replace(/^\/+|\/+$/g, '');
}
