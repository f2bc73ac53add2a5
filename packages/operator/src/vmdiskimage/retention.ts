import { deletionPolicyOf } from '../annotations.ts';
import { parseDuration } from '../settings/duration.ts';
import { timeOf } from '../times.ts';
import type { Observed } from './observe.ts';
import type { VMDiskImage } from './resource.ts';
import type { Reported } from './status.ts';

/**
 * Notice period: minimum time from the announcement of a deletion to the deletion. If the retention is shorter, the
 * notice period is as long as the retention.
 */
const MAX_NOTICE_MS = 24 * 60 * 60_000;

/**
 * Sets or removes the time when a Ready image is pruned. The retention starts once the image is Ready and unreferenced,
 * so the time of the import does not count.
 */
export function withRetention(image: Reported, { limits }: Observed, now: number): Reported {
  const { unreferencedSince = timeOf(now), pruneAt: announced, ...status } = image.status;
  const isUnused = status.references === 0 && image.metadata.deletionTimestamp === undefined;
  if (!isUnused) return { ...image, status };
  const unused = { ...status, unreferencedSince };
  // With the policy Orphan, the user wants to keep the data, so the operator never prunes such an image.
  const isKept = image.spec.retention?.keep === true || deletionPolicyOf(image) !== 'Delete';
  if (isKept) return { ...image, status: unused };
  const retentionMs = pruneAfterMs(image, limits.pruneAfterMs);
  const dueAt = Date.parse(unreferencedSince) + retentionMs;
  const pruneAt = timeOf(withNotice(dueAt, announced, now + Math.min(retentionMs, MAX_NOTICE_MS)));
  return { ...image, status: { ...unused, pruneAt } };
}

/**
 * Returns the time of the deletion. If the image is due later than announced, the new time applies immediately. If the
 * image is due earlier, or nothing was announced, a notice period comes first. The notice period never makes an
 * announced time later. Otherwise, each reconcile would postpone the deletion.
 * @param earliestAt end of a notice period that begins now
 */
function withNotice(dueAt: number, announced: string | undefined, earliestAt: number): number {
  const announcedAt = announced === undefined ? Number.POSITIVE_INFINITY : Date.parse(announced);
  return dueAt >= announcedAt ? dueAt : Math.min(announcedAt, Math.max(dueAt, earliestAt));
}

function pruneAfterMs({ spec: { retention } }: VMDiskImage, byDefault: number): number {
  return (retention?.pruneAfter === undefined ? undefined : parseDuration(retention.pruneAfter)) ?? byDefault;
}
