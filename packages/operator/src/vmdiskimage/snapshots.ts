import { machineUid } from '../kubevirt/clones.ts';
import type { VolumeSnapshot } from '../kubevirt/kinds.ts';
import { snapshotName } from './identity.ts';
import type { Users } from './references.ts';
import type { VMDiskImage } from './resource.ts';

/**
 * Counts the clones of a snapshot: VirtualMachines that have the snapshot in `status.snapshot`, even before their disk
 * exists, and DataVolumes that clone the snapshot. A VirtualMachine and its own DataVolume count as one clone.
 */
export function countClones(snapshot: string, { machines, clones }: Users): number {
  const cloners = new Set<string | undefined>();
  for (const { metadata, status } of machines) if (status?.snapshot === snapshot) cloners.add(metadata.uid);
  for (const volume of clones)
    if (volume.spec?.source?.snapshot?.name === snapshot)
      cloners.add(machineUid(volume) || volume.metadata.uid);
  return cloners.size;
}

/** Whether a DataVolume is still being cloned from a snapshot. Such a snapshot must not be deleted. */
export function isBeingCloned(snapshot: string, { clones }: Users): boolean {
  return clones.some(
    ({ metadata, spec, status }) =>
      spec?.source?.snapshot?.name === snapshot &&
      metadata.deletionTimestamp === undefined &&
      status?.phase !== 'Succeeded' &&
      status?.phase !== 'Failed',
  );
}

/** Returns the first unused name for a snapshot of an attempt. */
export function freeSnapshotName(image: VMDiskImage, attempt: number, used: ReadonlySet<string>): string {
  let number = 1;
  while (used.has(snapshotName(image, attempt, number))) number++;
  return snapshotName(image, attempt, number);
}

export function isReadyToUse({ metadata, status }: VolumeSnapshot): boolean {
  return metadata.deletionTimestamp === undefined && status?.readyToUse === true;
}
