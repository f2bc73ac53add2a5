import { deletionPolicyOf } from '../annotations.ts';
import { parseDuration } from '../settings/duration.ts';
import type { Observed } from './observe.ts';
import type { VMDiskImage } from './resource.ts';
import { type Reported, timeOf } from './status.ts';

/**
 * Sets or removes the time when a Ready image is pruned. The clock starts when the image becomes Ready without references or
 * loses the last one, so an image is never pruned during its import.
 */
export function withRetention(image: Reported, { limits }: Observed, now: number): Reported {
  const { unreferencedSince = timeOf(now), pruneAt: _, ...status } = image.status;
  const isUnused = status.references === 0 && image.metadata.deletionTimestamp === undefined;
  if (!isUnused) return { ...image, status };
  const unused = { ...status, unreferencedSince };
  // The policy Orphan means that the data is wanted, so only a user deletes such an image.
  const isKept = image.spec.retention?.keep === true || deletionPolicyOf(image) !== 'Delete';
  if (isKept) return { ...image, status: unused };
  const pruneAt = timeOf(Date.parse(unreferencedSince) + pruneAfterMs(image, limits.pruneAfterMs));
  return { ...image, status: { ...unused, pruneAt } };
}

function pruneAfterMs({ spec: { retention } }: VMDiskImage, byDefault: number): number {
  return (retention?.pruneAfter === undefined ? undefined : parseDuration(retention.pruneAfter)) ?? byDefault;
}
