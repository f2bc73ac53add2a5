import type { Draft } from '@vmwright/runtime';
import type { DataVolume, DataVolumeSource, VolumeSnapshot } from '../kubevirt/kinds.ts';
import { childMetadata, dataVolumeName } from './identity.ts';
import { type ImageSpec, NO_URL, type VMDiskImage } from './resource.ts';

/**
 * Annotations of an image's DataVolume. With the first one, CDI starts the import immediately, although no pod uses the
 * claim yet. With the second one, CDI keeps the DataVolume after the import. The operator needs the DataVolume to find
 * the claim.
 */
const ANNOTATIONS = {
  'cdi.kubevirt.io/storage.bind.immediate.requested': 'true',
  'cdi.kubevirt.io/storage.deleteAfterCompletion': 'false',
};

/** Returns the DataVolume that imports an image. */
export function dataVolumeFor(image: VMDiskImage, attempt: number): Draft<DataVolume> {
  const { storageClass, diskSize } = image.spec;
  const metadata = childMetadata(image, dataVolumeName(image, attempt));
  return {
    metadata: { ...metadata, annotations: ANNOTATIONS },
    spec: {
      source: sourceOf(image.spec),
      storage: {
        accessModes: ['ReadWriteOnce'],
        ...(storageClass !== undefined && { storageClassName: storageClass }),
        resources: { requests: { storage: diskSize } },
      },
    },
  };
}

/** Returns a snapshot of the claim of an image's DataVolume. */
export function snapshotFor(image: VMDiskImage, name: string, claim: string): Draft<VolumeSnapshot> {
  const { snapshotClass } = image.spec;
  return {
    metadata: childMetadata(image, name),
    spec: {
      ...(snapshotClass !== undefined && { volumeSnapshotClassName: snapshotClass }),
      source: { persistentVolumeClaimName: claim },
    },
  };
}

function sourceOf({
  sourceType,
  url = NO_URL,
  secretRef,
  certConfigMap,
  checksum,
}: ImageSpec): DataVolumeSource {
  const common = {
    url,
    ...(secretRef !== '' && { secretRef }),
    ...(certConfigMap !== undefined && { certConfigMap }),
  };
  switch (sourceType) {
    case 'blank':
      return { blank: {} };
    case 's3':
      return { s3: common };
    case 'registry':
      return { registry: common };
    case 'http':
      return { http: { ...common, ...(checksum !== undefined && { checksum }) } };
  }
}
