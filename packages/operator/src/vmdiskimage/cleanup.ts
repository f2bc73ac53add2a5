import { type KubeObject, keyOf } from '@vmwright/runtime';
import type { DataVolume, VolumeSnapshot } from '../kubevirt/kinds.ts';
import { isSnapshotOf } from './adoption.ts';
import { attemptOf, sourceDigest } from './identity.ts';
import type { Children, Observed } from './observe.ts';
import { isBeingCloned, isReadyToUse } from './snapshots.ts';
import type { Reported } from './status.ts';

/** A child of an image, with its kind. */
export type Child =
  | (DataVolume & { readonly childKind: 'DataVolume' })
  | (VolumeSnapshot & { readonly childKind: 'VolumeSnapshot' });

/** Returns kind and key of a child. */
export function nameOf({ childKind, metadata }: Child): string {
  return `${childKind} ${keyOf(metadata)}`;
}

export function volumeChild(volume: DataVolume): Child {
  return { ...volume, childKind: 'DataVolume' };
}

export function snapshotChild(snapshot: VolumeSnapshot): Child {
  return { ...snapshot, childKind: 'VolumeSnapshot' };
}

/**
 * Whether the disk of the current attempt is imported: the import succeeded with the checksum of the spec, and the
 * claim exists.
 */
export function hasImportedDisk({ volume, claim, isUnverified }: Observed): boolean {
  if (isUnverified) return false;
  if (volume?.status?.phase !== 'Succeeded' || claim === undefined) return false;
  if (claim.status?.phase === 'Lost') return false; // its PersistentVolume was deleted
  return volume.metadata.deletionTimestamp === undefined && claim.metadata.deletionTimestamp === undefined;
}

/**
 * Returns the children that have to be gone before the next attempt.
 * - An unfinished import is always removed. Otherwise, two importers of one image could run at the same time, although
 *   a sync slot permits only one import.
 * - An imported disk is kept if its source has not changed, because another download costs money. Only its snapshot is
 *   taken again.
 * - A usable snapshot and its disk are kept until the next attempt is Ready, because VMs may still be cloned from the
 *   snapshot.
 */
export function leftovers(image: Reported, observed: Observed): readonly Child[] {
  const { volume, snapshots } = observed;
  const isWanted = image.status.attempt?.source === sourceDigest(image.spec);
  const isKept = hasImportedDisk(observed) && (isWanted || snapshots.some(isReadyToUse));
  return [
    ...snapshots.filter((snapshot) => !isReadyToUse(snapshot)).map(snapshotChild),
    ...(volume === undefined || isKept ? [] : [volumeChild(volume)]),
    ...unfinishedImports(observed),
  ];
}

/**
 * Returns the children that have to be removed after a failure. If the operator tries again, these are the `leftovers`.
 * If not, the image may stay in the phase Failed for a long time, and keeps only:
 * - the last complete attempt, because the failed source may be a typing error
 * - snapshots that disks are being cloned from, and their DataVolumes
 */
export function remains(image: Reported, observed: Observed): readonly Child[] {
  if (image.status.phase !== 'Failed') return leftovers(image, observed);
  const { volume, snapshots, obsolete, users } = observed;
  const kept = lastComplete(image, obsolete);
  const isKept = (child: KubeObject) => attemptOf(image, child) === kept;
  return obsoleteChildren({
    obsolete: {
      volumes: [
        ...(volume === undefined ? [] : [volume]),
        ...obsolete.volumes.filter((each) => !isKept(each)),
      ],
      snapshots: [...snapshots, ...obsolete.snapshots.filter((each) => !isKept(each))],
    },
    users,
  });
}

/** Returns the number of the latest earlier attempt with an imported disk and a usable snapshot. */
function lastComplete(image: Reported, { volumes, snapshots }: Children): number | undefined {
  const usable = new Set(snapshots.filter(isReadyToUse).map((snapshot) => attemptOf(image, snapshot)));
  const complete = volumes
    .filter(
      ({ metadata, status }) => status?.phase === 'Succeeded' && metadata.deletionTimestamp === undefined,
    )
    .map((volume) => attemptOf(image, volume))
    .filter((attempt) => usable.has(attempt));
  return complete.length === 0 ? undefined : Math.max(...complete);
}

/** Returns the unfinished imports of earlier attempts. */
export function unfinishedImports({ obsolete }: Observed): readonly Child[] {
  return obsolete.volumes.filter(({ status }) => status?.phase !== 'Succeeded').map(volumeChild);
}

/**
 * Returns the children of earlier attempts that can be deleted once the current attempt is Ready. While a disk is being
 * cloned from a snapshot, the snapshot and its DataVolume stay.
 */
export function obsoleteChildren({
  obsolete: { volumes, snapshots },
  users,
}: Pick<Observed, 'obsolete' | 'users'>): readonly Child[] {
  const inUse = snapshots.filter(({ metadata }) => isBeingCloned(metadata.name, users));
  const isFree = (volume: DataVolume) => !inUse.some((snapshot) => isSnapshotOf(snapshot, volume));
  return [
    ...snapshots.filter((snapshot) => !inUse.includes(snapshot)).map(snapshotChild),
    ...volumes.filter(isFree).map(volumeChild),
  ];
}
