import type { DataVolume, VolumeSnapshot } from '../kubevirt/kinds.ts';
import { timeOf } from '../times.ts';
import { ADOPTED, attemptOf, sourceDigest } from './identity.ts';
import type { Children, Observed } from './observe.ts';
import type { VMDiskImage } from './resource.ts';
import { isReadyToUse } from './snapshots.ts';
import type { Reported } from './status.ts';

/* Takes over the data of images that an earlier controller imported, so that it is not imported again. */

/**
 * Whether another controller reported the image as Ready. The status then has no attempt; this operator always stores
 * an attempt before it reports Ready.
 */
export function isFromOtherController({ status }: VMDiskImage): boolean {
  return status?.phase === 'Ready' && status.attempt === undefined;
}

/** Returns the DataVolume into which another controller imported the image, if its claim has a usable snapshot. */
export function adoptable(image: VMDiskImage, { volumes, snapshots }: Children): DataVolume | undefined {
  if (!isFromOtherController(image)) return undefined;
  return volumes.find(
    (volume) =>
      attemptOf(image, volume) === ADOPTED &&
      volume.status?.phase === 'Succeeded' &&
      snapshots.some((snapshot) => isReadyToUse(snapshot) && isSnapshotOf(snapshot, volume)),
  );
}

/** Whether a snapshot was taken of the claim of a DataVolume. */
export function isSnapshotOf({ spec }: VolumeSnapshot, { metadata, status }: DataVolume): boolean {
  return spec?.source?.persistentVolumeClaimName === (status?.claimName ?? metadata.name);
}

/**
 * Returns the image with an attempt in its status that describes the adopted data. The spec with which the data was
 * imported is unknown, so the attempt records the current spec.
 */
export function adopted(image: Reported, { volume }: Pick<Observed, 'volume'>, now: number): Reported {
  if (volume === undefined) return image;
  const { generation } = image.metadata;
  const attempt = {
    number: ADOPTED,
    startedAt: volume.metadata.creationTimestamp ?? timeOf(now),
    source: sourceDigest(image.spec),
    ...(generation !== undefined && { generation }),
  };
  return { ...image, status: { ...image.status, attempt, dataVolume: volume.metadata.name } };
}
