import { keyOf } from '@vmwright/runtime';
import type { DataVolume, VolumeSnapshot } from '../kubevirt/kinds.ts';
import { sourceDigest } from './identity.ts';
import type { Observed } from './observe.ts';
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

/** Whether the disk of the current attempt is imported: the import succeeded, and the claim exists. */
export function hasImportedDisk({ volume, claim, isUnverified }: Observed): boolean {
  if (isUnverified) return false;
  if (volume?.status?.phase !== 'Succeeded' || claim === undefined) return false;
  if (claim.status?.phase === 'Lost') return false; // its volume was deleted
  return volume.metadata.deletionTimestamp === undefined && claim.metadata.deletionTimestamp === undefined;
}

/**
 * Returns the children that have to be gone before the next attempt. An import that is not finished is always removed, so that
 * a sync slot never covers two importers. An imported disk is kept if its source is still wanted: only its snapshot is taken
 * again, because another download costs money. It is also kept if VMs may be being cloned from it.
 */
export function leftovers(image: Reported, observed: Observed): readonly Child[] {
  const { volume, snapshots } = observed;
  const unfinished = unfinishedImports(observed);
  const isWanted = image.status.attempt?.source === sourceDigest(image.spec);
  if (hasImportedDisk(observed) && (isWanted || snapshots.some(isReadyToUse))) {
    const unusable = isWanted ? snapshots.filter((snapshot) => !isReadyToUse(snapshot)) : [];
    return [...unusable.map(snapshotChild), ...unfinished];
  }
  const volumes = volume === undefined ? [] : [volumeChild(volume)];
  return [...snapshots.map(snapshotChild), ...volumes, ...unfinished];
}

/** Returns the imports of earlier attempts that are not finished. */
export function unfinishedImports({ obsolete }: Observed): readonly Child[] {
  return obsolete.volumes.filter(({ status }) => status?.phase !== 'Succeeded').map(volumeChild);
}

/**
 * Returns the children of earlier attempts that can be deleted once the current one is Ready. A snapshot that a disk is being
 * cloned from stays until the clone is finished, and its DataVolume with it.
 */
export function obsoleteChildren({ obsolete: { volumes, snapshots }, users }: Observed): readonly Child[] {
  const inUse = snapshots.filter(({ metadata }) => isBeingCloned(metadata.name, users));
  const isFree = ({ metadata: { name } }: DataVolume) =>
    !inUse.some(({ metadata }) => metadata.name.startsWith(`${name}-`));
  return [
    ...snapshots.filter((snapshot) => !inUse.includes(snapshot)).map(snapshotChild),
    ...volumes.filter(isFree).map(volumeChild),
  ];
}
