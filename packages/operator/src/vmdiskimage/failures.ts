import { keyOf } from '@vmwright/runtime';
import type { SyncSettings } from '../settings/kubevirt.ts';
import { hasImportedDisk } from './cleanup.ts';
import { classify, type Failure, type FailureReason, withoutCredentials } from './errors.ts';
import { dataVolumeName } from './identity.ts';
import type { Observed } from './observe.ts';
import { blockerOf, importerMessage } from './progress.ts';
import type { Reported } from './status.ts';

/** Base of the back-off after failed attempts. */
const BACKOFF_MS = 60_000;
const BACKOFF_FACTOR = 3;

/**
 * Returns the time until the next attempt in milliseconds: 3ⁿ minutes after the n-th failure, at most `maxBackoffMs`.
 */
export function backoffMs(failures: number, { maxBackoffMs }: Pick<SyncSettings, 'maxBackoffMs'>): number {
  return Math.min(BACKOFF_MS * BACKOFF_FACTOR ** failures, maxBackoffMs);
}

/**
 * Returns the time when the current attempt times out, in milliseconds. Once the disk is imported, the time limit
 * starts again with the newest snapshot: the operator may have been stopped, or the image paused, between import and
 * snapshot. Infinite while an imported disk has no snapshot.
 */
export function attemptEndsAt({ status }: Reported, observed: Observed): number {
  const { snapshots, limits } = observed;
  const startedAt = Date.parse(status.attempt?.startedAt ?? '');
  if (!hasImportedDisk(observed)) return startedAt + limits.syncs.maxAttemptMs;
  const created = snapshots
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata: { creationTimestamp } }) =>
      creationTimestamp === undefined ? startedAt : Date.parse(creationTimestamp),
    );
  if (created.length === 0) return Number.POSITIVE_INFINITY;
  return Math.max(startedAt, ...created) + limits.syncs.maxAttemptMs;
}

/**
 * Returns the time when the operator stops trying to sync the image, in milliseconds; infinite before the first
 * attempt.
 */
export function syncEndsAt({ status: { syncStartedAt } }: Reported, { limits }: Observed): number {
  if (syncStartedAt === undefined) return Number.POSITIVE_INFINITY;
  return Date.parse(syncStartedAt) + limits.syncs.maxTotalMs;
}

/** Returns why the current attempt has failed; undefined if it continues. */
export function failureOf(image: Reported, observed: Observed, now: number): Failure | undefined {
  return (
    observed.rejection ??
    importFailure(image, observed) ??
    snapshotFailure(image, observed, now) ??
    timeout(image, observed, now)
  );
}

/**
 * Returns the failure of an image that was not synced within `maxTotalMs`, the time limit for all attempts together.
 */
export function syncTimeout({ limits }: Observed, cause?: Failure): Failure {
  const limit = formatTime(limits.syncs.maxTotalMs);
  const because = cause === undefined ? '' : `: ${cause.message}`;
  return terminal('SyncTimeout', `The image was not synced within ${limit}${because}`);
}

function importFailure(image: Reported, observed: Observed): Failure | undefined {
  const { volume, isNameTaken, isUnverified, limits } = observed;
  const { dataVolume, attempt } = image.status;
  const name = keyOf({
    namespace: image.metadata.namespace,
    name: dataVolumeName(image, attempt?.number ?? 0),
  });
  if (isNameTaken)
    return retryable('DataVolumeRejected', `The DataVolume ${name} exists and does not belong to the image`);
  if (volume === undefined && dataVolume === undefined) return undefined; // not created yet
  if (volume?.metadata.deletionTimestamp !== undefined || volume === undefined)
    return retryable('DataVolumeLost', `The DataVolume ${name} was deleted during the import`);
  if (isUnverified)
    return terminal(
      'ChecksumUnsupported',
      'The installed version of CDI cannot verify checksums; update CDI or remove spec.checksum',
    );
  const { phase, restartCount = 0 } = volume.status ?? {};
  if (phase === 'Succeeded')
    return !hasImportedDisk(observed)
      ? retryable('ClaimLost', `The PersistentVolumeClaim ${name} or its volume was deleted`)
      : undefined;
  const cause = importerMessage(volume);
  const rejection = classify(image, cause);
  if (rejection !== undefined) return rejection;
  const error = cause === '' ? (attempt?.importerError ?? '') : withoutCredentials(image, cause);
  const reported = error === '' ? '' : `. CDI reports: ${error}`;
  if (phase === 'Failed')
    return retryable('ImportFailed', `The import to the DataVolume ${name} failed${reported}`);
  if (restartCount > limits.syncs.maxRestarts)
    return retryable(
      'TooManyRestarts',
      `The importer of the DataVolume ${name} restarted more than ${limits.syncs.maxRestarts} times${reported}`,
    );
  return undefined;
}

/**
 * Time for which an error of a snapshot is tolerated: the snapshot controller retries, and many errors are temporary.
 */
const SNAPSHOT_ERROR_MS = 15_000;

/** Returns the time when an error of a snapshot makes the attempt fail; infinite if no snapshot has an error. */
export function snapshotFailsAt({ snapshots }: Observed): number {
  const times = snapshots
    .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.readyToUse !== true)
    .flatMap(({ metadata, status }) =>
      status?.error === undefined ? [] : [Date.parse(status.error.time ?? metadata.creationTimestamp ?? '')],
    );
  return Math.min(...times) + SNAPSHOT_ERROR_MS;
}

function snapshotFailure(image: Reported, observed: Observed, now: number): Failure | undefined {
  const { snapshots } = observed;
  if (now < snapshotFailsAt(observed)) return undefined;
  for (const { metadata, status } of snapshots) {
    if (metadata.deletionTimestamp !== undefined || status?.readyToUse === true) continue;
    const { error } = status ?? {};
    if (error !== undefined)
      return retryable(
        'SnapshotFailed',
        `The VolumeSnapshot ${keyOf(metadata)} failed: ${withoutCredentials(image, error.message ?? 'no cause given')}`,
      );
  }
  return undefined;
}

function timeout(image: Reported, observed: Observed, now: number): Failure | undefined {
  if (now < attemptEndsAt(image, observed)) return undefined;
  const limit = formatTime(observed.limits.syncs.maxAttemptMs);
  return retryable('AttemptTimeout', `The attempt took longer than ${limit}: ${blockerOf(image, observed)}`);
}

function retryable(reason: FailureReason, message: string): Failure {
  return { reason, message, isTerminal: false };
}

function terminal(reason: FailureReason, message: string): Failure {
  return { reason, message, isTerminal: true };
}

function formatTime(ms: number): string {
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000} h`;
  return ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1_000} s`;
}
