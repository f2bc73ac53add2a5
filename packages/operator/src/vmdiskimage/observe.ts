import {
  type Caches,
  type Client,
  ignoreNotFound,
  type Kind,
  type KubeObject,
  keyOf,
  refOf,
} from '@vmwright/runtime';
import {
  type DataSource,
  DataVolume,
  PersistentVolumeClaim,
  StorageClass,
  VolumeSnapshot,
} from '../kubevirt/kinds.ts';
import { indexOwners, ownedIn } from '../kubevirt/owner-index.ts';
import { controllerOf, isOwnedBy } from '../kubevirt/ownership.ts';
import type { KubevirtSettings } from '../settings/kubevirt.ts';
import { adoptable, isSnapshotOf } from './adoption.ts';
import type { Failure } from './errors.ts';
import {
  ADOPTED,
  attemptOf,
  claimPrefix,
  clonedPrefix,
  dataVolumeName,
  prefixKey,
  sourceDigest,
} from './identity.ts';
import { type Users, usersOf } from './references.ts';
import { VMDiskImage } from './resource.ts';
import { isReadyToUse } from './snapshots.ts';

/** Settings that plans for images depend on. */
export type ImageLimits = Pick<KubevirtSettings, 'syncs' | 'pruneAfterMs' | 'imageNamespaces'>;

/** State of the cluster that the plan for an image is based on. */
export interface Observed {
  readonly limits: ImageLimits;
  /** DataVolume of the current attempt, if it exists and belongs to the image. */
  readonly volume?: DataVolume | undefined;
  /** Whether a foreign DataVolume has the name of the current attempt's DataVolume. */
  readonly isNameTaken: boolean;
  /**
   * Whether the DataVolume lacks the checksum of the spec. The installed version of CDI then does not know checksums.
   */
  readonly isUnverified: boolean;
  /** Claim of the DataVolume. */
  readonly claim?: PersistentVolumeClaim | undefined;
  /** Snapshots of the current attempt that belong to the image, oldest first. */
  readonly snapshots: readonly VolumeSnapshot[];
  /**
   * Names of VolumeSnapshots that begin with the DataVolume's name. Includes snapshots that do not belong to the image.
   */
  readonly snapshotNames: ReadonlySet<string>;
  /**
   * Children of earlier attempts, including children that an earlier controller created (attempt 0). Children of later
   * attempts are left out: if they exist, the cached image is older than its children.
   */
  readonly obsolete: Children;
  /** Highest attempt number in the status of the image and in the names of its children. */
  readonly lastAttempt: number;
  readonly users: Users;
  /**
   * Whether the image holds a sync slot. `waiting`: it requested a slot, but other images are ahead of it in the queue.
   */
  readonly slot: 'held' | 'none' | 'waiting';
  /** What is wrong with the storage class; undefined if nothing is wrong. */
  readonly storageClass?: string | undefined;
  /** Failure of an action of this reconcile: the API server rejected a child. */
  readonly rejection?: Failure | undefined;
}

export interface Children {
  readonly volumes: readonly DataVolume[];
  readonly snapshots: readonly VolumeSnapshot[];
}

/** Name of two indexes: one of images, and one of their claims. The key in both is the `prefixKey` of the image. */
const BY_PREFIX = 'vmdiskimage-prefix';
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';

/** Adds the indexes that the functions of this file read. */
export function indexChildren(caches: Caches): void {
  indexOwners(caches.get(DataVolume));
  indexOwners(caches.get(VolumeSnapshot));
  caches.get(VMDiskImage).addIndex(BY_PREFIX, (image) => [prefixKey(image)]);
  caches.get(PersistentVolumeClaim).addIndex(BY_PREFIX, (claim) => [claimPrefix(claim) ?? []].flat());
}

/** Returns the keys of the images whose children have this `prefixKey`. */
export function imagesWithPrefix(prefix: string | undefined, caches: Caches): readonly string[] {
  if (prefix === undefined) return [];
  return [...caches.get(VMDiskImage).byIndex(BY_PREFIX, prefix)].map(({ metadata }) => keyOf(metadata));
}

/** Returns the keys of the images that own the source (snapshot or claim) of a DataVolume or DataSource. */
export function clonedImages(clone: DataVolume | DataSource, caches: Caches): readonly string[] {
  const { snapshot, pvc } = clone.spec?.source ?? {};
  const source = snapshot && caches.get(VolumeSnapshot).get(snapshot);
  const disk = pvc && caches.get(DataVolume).get(pvc);
  const owner = [source, disk].flatMap((each) => (each && controllerOf(each)) ?? [])[0];
  const namespace = snapshot?.namespace ?? pvc?.namespace;
  // The name of a child identifies its image, even if the cache lacks the child. Adopted children have other names, so
  // the owner reference is also used.
  const owning = owner?.kind === VMDiskImage.kind ? [keyOf({ namespace, name: owner.name })] : [];
  return [...new Set([...imagesWithPrefix(clonedPrefix(clone), caches), ...owning])];
}

/**
 * Returns the claims that are deleted with an image: those of all its DataVolumes, including DataVolumes that are gone.
 */
export function claimsOf(image: VMDiskImage, caches: Caches): readonly PersistentVolumeClaim[] {
  const claims = caches.get(PersistentVolumeClaim).byIndex(BY_PREFIX, prefixKey(image));
  return [...claims].filter((claim) => isDeletedWith(image, claim, caches));
}

/**
 * Whether the garbage collector deletes a claim once the DataVolumes of the image are gone. After a deletion with
 * `--cascade=orphan`, it keeps the claim:
 * - If a user deleted the DataVolume in this way, the claim has no controller.
 * - If a user deleted the image in this way, the DataVolume has lost its owner reference, and stays with its claim.
 */
export function isDeletedWith(image: VMDiskImage, claim: PersistentVolumeClaim, caches: Caches): boolean {
  const owner = controllerOf(claim);
  if (owner === undefined) return false;
  const { namespace } = claim.metadata;
  const volume = caches.get(DataVolume).get({ namespace, name: owner.name });
  return volume?.metadata.uid !== owner.uid || isOwnedBy(volume, image);
}

/**
 * Returns all children of an image in the caches. An object in another namespace cannot belong to the image, even if
 * its owner reference says so.
 */
export function childrenOf(image: VMDiskImage, caches: Caches): Children {
  return {
    volumes: ownedIn(caches.get(DataVolume), image),
    snapshots: ownedIn(caches.get(VolumeSnapshot), image).toSorted(byAge),
  };
}

/**
 * Gathers the state of an image from the caches. The watch of one kind may be far behind the watch of another,
 * especially on a new leader. So children are read from the API server if their cached state could make the plan delete
 * data:
 * - children that the status names but the caches lack
 * - children that the caches show as unfinished, except those of a running attempt
 */
export async function observe(
  image: VMDiskImage,
  known: Pick<Observed, 'limits' | 'slot' | 'rejection'>,
  caches: Caches,
  client: Pick<Client, 'get'>,
): Promise<Observed> {
  const { namespace } = image.metadata;
  const { phase, attempt, dataVolume, snapshots: recorded = [] } = image.status ?? {};
  const read = async <T extends KubeObject>(kind: Kind<T>, name: string): Promise<readonly T[]> => {
    const found = await ignoreNotFound(client.get(kind, { namespace, name }));
    return found !== undefined && isOwnedBy(found, image) ? [found] : [];
  };
  const { volumes, snapshots: cached } = childrenOf(image, caches);
  const number = attempt?.number ?? ADOPTED;
  const adopting = adoptable(image, { volumes, snapshots: cached });
  const name = adopting?.metadata.name ?? dataVolumeName(image, number);
  const isEarlier = (child: KubeObject) => attemptOf(image, child) < number;
  const current = volumes.find(({ metadata }) => metadata.name === name);
  const ofAttempt = cached.filter(
    (snapshot) =>
      attemptOf(image, snapshot) === number &&
      // The name of an adopted snapshot does not show its DataVolume, so its source is compared with the DataVolume.
      (number !== ADOPTED || current === undefined || isSnapshotOf(snapshot, current)),
  );
  let volume = current;
  let snapshots: readonly VolumeSnapshot[] = ofAttempt;
  const isRunning = phase === 'Syncing' && volume !== undefined;
  if (dataVolume === name && !isRunning && !isImported(volume)) [volume] = await read(DataVolume, name);
  if (phase !== 'Syncing') {
    const usable = ofAttempt.filter(isReadyToUse);
    const names = new Set([
      ...ofAttempt.map(({ metadata }) => metadata.name),
      ...recorded.map((each) => each.name),
    ]);
    for (const { metadata } of usable) names.delete(metadata.name);
    const doubtful = await Promise.all([...names].map((each) => read(VolumeSnapshot, each)));
    snapshots = [...usable, ...doubtful.flat()].toSorted(byAge);
  }
  const namesake = caches.get(DataVolume).get({ namespace, name });
  const earlier = volumes.filter(isEarlier);
  const unfinished = earlier.filter((each) => !isImported(each));
  const confirmed = await Promise.all(unfinished.map(({ metadata }) => read(DataVolume, metadata.name)));
  return {
    ...known,
    volume,
    isNameTaken: namesake !== undefined && !isOwnedBy(namesake, image),
    isUnverified: volume !== undefined && lacksChecksum(image, volume),
    claim: volume && (await observeClaim(volume, caches, client)),
    snapshots,
    snapshotNames: namesIn(caches.get(VolumeSnapshot).keys(), keyOf({ namespace, name })),
    obsolete: {
      volumes: [...earlier.filter(isImported), ...confirmed.flat()],
      snapshots: cached.filter(isEarlier),
    },
    lastAttempt: Math.max(number, ...[...volumes, ...cached].map((child) => attemptOf(image, child))),
    users: usersOf(image, caches, known.limits),
    storageClass: storageClassProblem(image, caches),
  };
}

function isImported(volume: DataVolume | undefined): boolean {
  return volume?.status?.phase === 'Succeeded';
}

/** Returns the names of objects whose key begins with this prefix. */
function namesIn(keys: Iterable<string>, prefix: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const key of keys) if (key.startsWith(prefix)) names.add(refOf(key).name);
  return names;
}

/**
 * Whether the API server dropped the checksum, because the CRD of the installed CDI does not declare it. False for a
 * DataVolume of an earlier spec: that spec may have had another checksum.
 */
function lacksChecksum({ spec, status }: VMDiskImage, volume: DataVolume): boolean {
  if (spec.checksum === undefined || status?.attempt?.source !== sourceDigest(spec)) return false;
  return volume.spec?.source?.http?.checksum !== spec.checksum;
}

async function observeClaim(
  { metadata, status }: DataVolume,
  caches: Caches,
  client: Pick<Client, 'get'>,
): Promise<PersistentVolumeClaim | undefined> {
  const ref = { namespace: metadata.namespace, name: status?.claimName ?? metadata.name };
  const cached = caches.get(PersistentVolumeClaim).get(ref);
  if (cached !== undefined || status?.phase !== 'Succeeded') return cached;
  return ignoreNotFound(client.get(PersistentVolumeClaim, ref));
}

function storageClassProblem({ spec: { storageClass } }: VMDiskImage, caches: Caches): string | undefined {
  const classes = caches.get(StorageClass);
  if (storageClass !== undefined)
    return classes.get(storageClass) === undefined
      ? `the StorageClass ${storageClass} does not exist; create it or correct spec.storageClass`
      : undefined;
  const hasDefault = [...classes.list()].some(
    ({ metadata }) => metadata.annotations?.[DEFAULT_CLASS] === 'true',
  );
  return hasDefault ? undefined : 'the cluster has no default StorageClass; set spec.storageClass';
}

/** Sorts snapshots by the number at the end of their name: a shorter name has a smaller number. */
function byAge({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  return a.name.length - b.name.length || (keyOf(a) < keyOf(b) ? -1 : 1);
}
