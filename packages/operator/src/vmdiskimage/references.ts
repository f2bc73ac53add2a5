import { type Caches, type KubeObject, keyOf, type ObjectCache, type ObjectRef } from '@vmwright/runtime';
import { clonesThrough, indexDataSources, machineUid } from '../kubevirt/clones.ts';
import { DataSource, DataVolume, VolumeSnapshot } from '../kubevirt/kinds.ts';
import { indexOwners, ownedIn } from '../kubevirt/owner-index.ts';
import { type ImageAccessSettings, mayUseImage } from '../virtualmachine/image-access.ts';
import { IMAGE_INDEX, indexByImage } from '../virtualmachine/image-ref.ts';
import { VirtualMachine } from '../virtualmachine/resource.ts';
import { ADOPTED, attemptOf, clonedPrefix, prefixKey } from './identity.ts';
import type { VMDiskImage } from './resource.ts';

/**
 * Index of DataVolumes and DataSources by the `prefixKey` of the image that owns their source (snapshot or claim).
 */
const CLONES_BY_IMAGE = 'cloned-vmdiskimage';
/**
 * Index of DataVolumes and DataSources by their source (snapshot or claim). It is needed for adopted snapshots and
 * claims, because their names do not identify the image.
 */
const CLONES_BY_SOURCE = 'cloned-source';

/** Objects that use an image. */
export interface Users {
  /** VirtualMachines that name the image and may use it, including terminating VirtualMachines. */
  readonly machines: readonly VirtualMachine[];
  /** DataVolumes of any owner that clone a snapshot or the claim of the image, directly or through a DataSource. */
  readonly clones: readonly DataVolume[];
}

/** References to an image. */
export interface References {
  readonly count: number;
  /** Kind and key of each referrer, sorted: `VirtualMachine ns/name`. */
  readonly referrers: readonly string[];
}

/** Adds the indexes that `usersOf` reads. May be called more than once. */
export function indexUsers(caches: Caches): void {
  indexByImage(caches.get(VirtualMachine));
  indexDataSources(caches);
  indexOwners(caches.get(DataVolume));
  indexOwners(caches.get(VolumeSnapshot));
  caches.get(DataVolume).addIndex(CLONES_BY_SOURCE, sourceKeys);
  caches.get(DataSource).addIndex(CLONES_BY_SOURCE, sourceKeys);
  const prefixes = (object: DataVolume | DataSource) => [clonedPrefix(object) ?? []].flat();
  caches.get(DataVolume).addIndex(CLONES_BY_IMAGE, prefixes);
  caches.get(DataSource).addIndex(CLONES_BY_IMAGE, prefixes);
}

/**
 * Returns the cached objects that use an image. Ignores VirtualMachines that are not allowed to use the image.
 * Otherwise, a user without rights in the image's namespace could block the deletion of the image.
 */
export function usersOf(
  image: VMDiskImage,
  caches: Caches,
  settings: Pick<ImageAccessSettings, 'imageNamespaces'>,
): Users {
  const named = [...caches.get(VirtualMachine).byIndex(IMAGE_INDEX, keyOf(image.metadata))];
  return {
    machines: named.filter((machine) => mayUseImage(machine, image, settings)),
    clones: [
      ...clonesOf(image, caches.get(DataVolume), caches),
      ...clonesOf(image, caches.get(DataSource), caches).flatMap((source) => clonesThrough(source, caches)),
    ],
  };
}

/** Returns the cached DataVolumes or DataSources that name a child of an image. */
function clonesOf<T extends DataVolume | DataSource>(
  image: VMDiskImage,
  clones: Pick<ObjectCache<T>, 'byIndex'>,
  caches: Caches,
): readonly T[] {
  const isAdopted = (child: KubeObject) => attemptOf(image, child) === ADOPTED;
  const sources = [
    ...ownedIn(caches.get(VolumeSnapshot), image)
      .filter(isAdopted)
      .map(({ metadata }) => snapshotKey(metadata)),
    ...ownedIn(caches.get(DataVolume), image)
      .filter(isAdopted)
      .map(({ metadata }) => claimKey(metadata)),
  ];
  return [
    ...clones.byIndex(CLONES_BY_IMAGE, prefixKey(image)),
    ...sources.flatMap((key) => [...clones.byIndex(CLONES_BY_SOURCE, key)]),
  ];
}

/** Returns the keys of a DataVolume or DataSource in the index by source. */
function sourceKeys({ spec }: DataVolume | DataSource): readonly string[] {
  const { snapshot, pvc } = spec?.source ?? {};
  return [
    ...(snapshot === undefined ? [] : [snapshotKey(snapshot)]),
    ...(pvc === undefined ? [] : [claimKey(pvc)]),
  ];
}

function snapshotKey(ref: ObjectRef): string {
  return `snapshot ${keyOf(ref)}`;
}

function claimKey(ref: ObjectRef): string {
  return `claim ${keyOf(ref)}`;
}

/** Whether the caches of the kinds that may refer to an image are complete. */
export function hasSyncedUsers(caches: Caches): boolean {
  return USERS.every((kind) => caches.get<KubeObject>(kind).hasSynced);
}

/** Kinds that may refer to an image. */
const USERS = [VirtualMachine, DataVolume, DataSource] as const;

/**
 * Reads all VirtualMachines, DataVolumes and DataSources from etcd into the caches. Afterwards, `usersOf` returns every
 * user that existed at the time of the call, even if a watch is delayed.
 * @returns the existing namespaces that cannot be listed; their objects may be missing from the caches
 */
export async function refreshUsers(caches: Caches, signal: AbortSignal): Promise<readonly string[]> {
  const skipped = await Promise.all(USERS.map((kind) => caches.get<KubeObject>(kind).refresh(signal)));
  return [...new Set(skipped.flat())].toSorted();
}

/**
 * Counts the references to an image. The root disk of a counted VirtualMachine is not counted; otherwise the machine
 * would count twice.
 */
export function countReferences({ machines, clones }: Users): References {
  const counted = new Set(machines.map(({ metadata }) => metadata.uid));
  const referrers = [
    ...machines.map(({ metadata }) => `VirtualMachine ${keyOf(metadata)}`),
    ...clones
      .filter((volume) => !counted.has(machineUid(volume)))
      .map(({ metadata }) => `DataVolume ${keyOf(metadata)}`),
  ];
  return { count: referrers.length, referrers: referrers.toSorted() };
}

/** Returns a sentence part that names the first referrers: `VirtualMachine a/b, … and 3 more`. */
export function listReferrers({ count, referrers }: References, most: number): string {
  const named = referrers.slice(0, most).join(', ');
  return count > most ? `${named} and ${count - most} more` : named;
}
