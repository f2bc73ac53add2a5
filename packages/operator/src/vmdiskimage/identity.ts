import { createHash } from 'node:crypto';
import { type KubeObject, keyOf } from '@vmwright/runtime';
import type { DataSource, DataVolume } from '../kubevirt/kinds.ts';
import { ownerReference } from '../kubevirt/ownership.ts';
import { type ImageSpec, VMDiskImage } from './resource.ts';

/* Names, labels and ownership of the DataVolumes and VolumeSnapshots of an image. */

/** Label of an image's children. Its value is the UID of the image, because the name may be too long for a label. */
const UID_LABEL = 'vmwright.dev/vmdiskimage-uid';

/** Maximum length of the part of a child's name that comes from the image's name. */
const MAX_NAME = 40;
const UID_DIGITS = 8;

/**
 * Returns the beginning of the names of all children of an image. It contains a part of the UID, because an old image
 * of the same name may still have terminating children. The names of the new children must differ from theirs.
 */
function childPrefix({ metadata: { name, uid = '' } }: KubeObject): string {
  // If the cut name ended with a dot, the prefix would contain `.-`, which is invalid in a name. So dots and hyphens at
  // the end are removed.
  return `${name.slice(0, MAX_NAME).replace(/[-.]+$/, '')}-${uid.slice(0, UID_DIGITS)}`;
}

/** Number of the attempt with adopted children: an earlier controller created and named them. */
export const ADOPTED = 0;

/** Returns the name of the DataVolume of an attempt, and of its PersistentVolumeClaim. */
export function dataVolumeName(image: VMDiskImage, attempt: number): string {
  if (attempt === ADOPTED && image.status?.dataVolume !== undefined) return image.status.dataVolume;
  return `${childPrefix(image)}-${attempt}`;
}

/** Returns the name of a snapshot of an attempt. @param number 1 for the first snapshot */
export function snapshotName(image: VMDiskImage, attempt: number, number: number): string {
  return `${dataVolumeName(image, attempt)}-${number}`;
}

/** Returns the metadata of a child of an image. */
export function childMetadata(image: VMDiskImage, name: string) {
  const { namespace = '', uid = '' } = image.metadata;
  return {
    namespace,
    name,
    labels: { [UID_LABEL]: uid },
    ownerReferences: [ownerReference(VMDiskImage, image)],
  };
}

/**
 * Returns the number of the attempt that a child belongs to, from its name; `ADOPTED` if the operator did not choose
 * the name.
 */
export function attemptOf(image: VMDiskImage, { metadata: { name } }: KubeObject): number {
  const prefix = childPrefix(image);
  const [, number = ADOPTED] =
    (name.startsWith(prefix) && /^-(\d+)(-\d+)?$/.exec(name.slice(prefix.length))) || [];
  return Number(number);
}

/**
 * Returns the key by which the clones and claims of an image are indexed: namespace and name prefix of its children.
 */
export function prefixKey(image: VMDiskImage): string {
  return keyOf({ namespace: image.metadata.namespace, name: childPrefix(image) });
}

/**
 * Returns the `prefixKey` of the image that owns the source (snapshot or claim) of a DataVolume or DataSource. The key
 * is derived from the name of the source, so it is known even if the cache lacks the source. Undefined if the source
 * cannot belong to an image.
 */
export function clonedPrefix({ metadata, spec }: DataVolume | DataSource): string | undefined {
  const { snapshot, pvc } = spec?.source ?? {};
  const source = snapshot ?? pvc;
  const name = snapshot === undefined ? withoutNumbers(pvc?.name, 1) : withoutNumbers(snapshot.name, 2);
  if (source === undefined || name === undefined) return undefined;
  return keyOf({ namespace: source.namespace ?? metadata.namespace, name });
}

/** Returns the `prefixKey` of the image that a claim belongs to, from its name; undefined if it belongs to no image. */
export function claimPrefix({ metadata: { namespace, name } }: KubeObject): string | undefined {
  const prefix = withoutNumbers(name, 1);
  return prefix === undefined ? undefined : keyOf({ namespace, name: prefix });
}

/** Removes `count` suffixes such as `-12`; returns undefined if the name has fewer. */
function withoutNumbers(name: string | undefined, count: number): string | undefined {
  let rest = name;
  for (let removed = 0; removed < count; removed++) rest = rest && /^(.+)-\d+$/.exec(rest)?.[1];
  return rest;
}

/**
 * Returns a digest of the fields that the imported data depends on. If the digest changes, the image must be imported
 * again. The digest does not cover credentials and certificates.
 */
export function sourceDigest({ sourceType, url, checksum, diskSize, storageClass }: ImageSpec): string {
  const fields = [sourceType, sourceType === 'blank' ? null : url, checksum, diskSize, storageClass];
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex').slice(0, 16);
}
