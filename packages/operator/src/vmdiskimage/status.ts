import {
  conditionOf,
  type Outcome,
  removeCondition,
  setCondition,
  withOutcome,
  withPaused as withPausedCondition,
} from '@vmwright/runtime';
import { pauseOf, RETRY, retryRequestOf } from '../annotations.ts';
import { timeOf } from '../times.ts';
import type { VMDiskImageOutcome, VMDiskImageReason } from './conditions.ts';
import { type Failure, safeUrl } from './errors.ts';
import { dataVolumeName, sourceDigest } from './identity.ts';
import type { Observed } from './observe.ts';
import { countReferences, listReferrers } from './references.ts';
import type { VMDiskImage, VMDiskImageStatus } from './resource.ts';
import { countClones, isReadyToUse } from './snapshots.ts';

/*
 * Each function returns the image with the status for one situation. Messages are the same on every retry, so that a
 * retry writes nothing.
 */

export const READY_MESSAGE = 'VMs can be cloned from the image';
const PROGRESSING = 'Progressing';
const DELETION_BLOCKED = 'DeletionBlocked';
/** Maximum number of referrers in the status. */
const MAX_REFERRERS = 20;
/** Maximum number of referrers that a message names. */
export const NAMED_REFERRERS = 5;

/** An image with a status. */
export type Reported = VMDiskImage & { readonly status: VMDiskImageStatus };

/** Sets the references, and DeletionBlocked if the image is being deleted. */
export function withReferences(
  image: VMDiskImage,
  { users }: Pick<Observed, 'users'>,
  now: number,
): Reported {
  const references = countReferences(users);
  const { referencedBy: _, ...status } = image.status ?? {};
  const named = references.referrers.slice(0, MAX_REFERRERS);
  const counted: VMDiskImageStatus = {
    ...status,
    references: references.count,
    ...(named.length > 0 && { referencedBy: named }),
  };
  if (image.metadata.deletionTimestamp === undefined) return { ...image, status: counted };
  const message = `The image is being deleted and is still used by ${listReferrers(references, NAMED_REFERRERS)}. It is deleted when nothing uses it any more`;
  const blocked = { type: DELETION_BLOCKED, status: 'True', reason: 'Referenced', message } as const;
  return { ...image, status: withCondition(image, counted, blocked, now) };
}

/** Returns an image that is paused. Only the condition Paused changes, unless the image has no status yet. */
export function paused(image: Reported, now: number): Reported {
  const withCondition = { ...image, status: withPausedCondition(image, image.status, pauseOf(image), now) };
  if (image.status.phase !== undefined) return withCondition;
  const message = 'The image is not imported while it is paused';
  return report(withCondition, { state: 'progressing', reason: 'Paused', message }, now);
}

/** Returns an image that has to be synced, in the phase Queued. It gets no sync slot until its `queuedAt` is set. */
export function enqueued(image: Reported): Reported {
  const {
    progress: _1,
    snapshots: _2,
    queuedAt: _3,
    unreferencedSince: _4,
    pruneAt: _5,
    ...status
  } = image.status;
  return { ...image, status: { ...status, phase: 'Queued' } };
}

/** Removes the recorded failures, for example after the source has changed or a user has requested another attempt. */
export function withoutFailures(image: Reported): Reported {
  const { failureCount: _1, lastFailureTime: _2, syncStartedAt: _3, ...status } = image.status;
  return { ...image, status: { ...status, ...handledRetry(image) } };
}

/** Records the request to try again as handled, so that only a new request has an effect. */
function handledRetry(image: VMDiskImage): Pick<VMDiskImageStatus, 'retryRequest'> {
  const retryRequest = retryRequestOf(image);
  return retryRequest === undefined ? {} : { retryRequest };
}

/** Returns an image that waits for a sync slot. */
export function queued(image: Reported, { limits }: Observed, now: number): Reported {
  const status = { ...image.status, queuedAt: image.status.queuedAt ?? timeOf(now) };
  const message = `Waiting for a sync slot; at most ${limits.syncs.concurrency} images are synced at the same time`;
  return report({ ...image, status }, { state: 'progressing', reason: 'Queued', message }, now);
}

/**
 * Returns an image in the phase Queued that still has children of its last attempt. It gets no sync slot until they are
 * deleted, so `queuedAt` is removed.
 * @param child one of these children
 */
export function cleaning(image: Reported, child: string, now: number): Reported {
  const { queuedAt: _, ...status } = image.status;
  const message = `Waiting until the ${child} of the last attempt is deleted`;
  return report({ ...image, status }, { state: 'progressing', reason: 'Queued', message }, now);
}

/** Returns an image that begins an attempt. @param isImported whether the disk of this attempt is imported already */
export function started(image: Reported, number: number, isImported: boolean, now: number): Reported {
  const { dataVolume: _1, progress: _2, queuedAt: _3, ...status } = image.status;
  const time = timeOf(now);
  const { generation } = image.metadata;
  const attempt = { number, startedAt: time, progressedAt: time, source: sourceDigest(image.spec) };
  const begun: VMDiskImageStatus = {
    ...status,
    phase: 'Syncing',
    attempt: { ...attempt, ...(generation !== undefined && { generation }) },
    progress: isImported ? 100 : 0,
    syncStartedAt: status.syncStartedAt ?? time,
    ...(isImported && { dataVolume: dataVolumeName(image, number) }),
  };
  return syncing({ ...image, status: begun }, undefined, now);
}

/** Returns an image with a running attempt. @param blocker what blocks the attempt, if it makes no progress */
export function syncing(image: Reported, blocker: string | undefined, now: number): Reported {
  const { spec, status } = image;
  const step: VMDiskImageOutcome =
    status.progress === 100
      ? { state: 'progressing', reason: 'Snapshotting', message: 'Taking a snapshot of the imported disk' }
      : {
          state: 'progressing',
          reason: 'Importing',
          message: spec.sourceType === 'blank' ? 'Creating an empty disk' : `Importing ${safeUrl(spec.url)}`,
        };
  const progressing =
    blocker === undefined
      ? ({ status: 'True', reason: step.reason, message: step.message } as const)
      : ({
          status: 'False',
          reason: 'NoProgress',
          message: `${step.message} makes no progress: ${blocker}`,
        } as const);
  return report(image, step, now, progressing);
}

/** Returns an image after its attempt failed. */
export function failed(image: Reported, failure: Failure, now: number): Reported {
  const { progress: _1, queuedAt: _2, ...status } = image.status;
  const remedy = failure.isTerminal
    ? `The operator does not try again until the spec changes or the annotation ${RETRY} gets a new value`
    : 'The operator tries again';
  const counted: VMDiskImageStatus = {
    ...status,
    phase: failure.isTerminal ? 'Failed' : 'RetryableFailure',
    failureCount: (status.failureCount ?? 0) + 1,
    lastFailureTime: timeOf(now),
    ...handledRetry(image),
  };
  const state = failure.isTerminal ? 'stalled' : 'progressing';
  const outcome: VMDiskImageOutcome = {
    state,
    reason: failure.reason,
    message: `${failure.message}. ${remedy}`,
  };
  return report({ ...image, status: counted }, outcome, now);
}

/** Returns an image with a failure that is already reported. Sets the current generation in its conditions. */
export function stillFailed(image: Reported, now: number): Reported {
  const { phase, conditions } = image.status;
  const before = conditionOf(conditions, 'Ready');
  if (before === undefined) return image;
  const { reason, message } = before;
  return withReport(image, { state: phase === 'Failed' ? 'stalled' : 'progressing', reason, message }, now);
}

/** Returns an image that VMs can be cloned from. */
export function ready(image: Reported, { snapshots, users }: Observed, now: number): Reported {
  const { queuedAt: _, ...status } = withoutFailures(image).status;
  const usable = snapshots
    .filter(isReadyToUse)
    .map(({ metadata: { name } }) => ({ name, clones: countClones(name, users) }));
  const complete: VMDiskImageStatus = {
    ...status,
    phase: 'Ready',
    progress: 100,
    snapshots: usable,
    ...(status.attempt && { dataVolume: dataVolumeName(image, status.attempt.number) }),
  };
  const { maxClones = Number.POSITIVE_INFINITY } = image.spec;
  const message = usable.some(({ clones }) => clones < maxClones)
    ? READY_MESSAGE
    : `Every snapshot has ${maxClones} clones (spec.maxClones); another snapshot is being taken`;
  return report({ ...image, status: complete }, { state: 'ready', reason: 'Ready', message }, now);
}

/** Returns an image that is to be deleted. @param outcome what the deletion does or waits for, or what blocks it */
export function deleting(
  image: VMDiskImage,
  outcome: Omit<VMDiskImageOutcome, 'reason'>,
  now: number,
): Reported {
  const { pruneAt: _1, unreferencedSince: _2, ...before } = image.status ?? {};
  const conditions = removeCondition(before.conditions, DELETION_BLOCKED);
  return report({ ...image, status: { ...before, conditions } }, { ...outcome, reason: 'Deleting' }, now);
}

/** Reports an outcome with a reason from the table of conditions. */
function report(
  image: Reported,
  outcome: VMDiskImageOutcome,
  now: number,
  progressing?: Omit<NewCondition, 'type'>,
): Reported {
  return withReport(image, outcome, now, progressing);
}

/** Sets Ready, Reconciling, Stalled, Paused and the message. Removes Progressing unless it is given. */
function withReport(
  image: Reported,
  outcome: Outcome,
  now: number,
  progressing?: Omit<NewCondition, 'type'>,
): Reported {
  const message = { ...image.status, message: outcome.message };
  const status = withOutcome(image, withPausedCondition(image, message, pauseOf(image), now), outcome, now);
  if (progressing !== undefined)
    return { ...image, status: withCondition(image, status, { type: PROGRESSING, ...progressing }, now) };
  return { ...image, status: { ...status, conditions: removeCondition(status.conditions, PROGRESSING) } };
}

interface NewCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: VMDiskImageReason;
  readonly message: string;
}

function withCondition(
  { metadata: { generation } }: VMDiskImage,
  status: VMDiskImageStatus,
  condition: NewCondition,
  now: number,
): VMDiskImageStatus {
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  return { ...status, conditions: setCondition(status.conditions, { ...condition, ...observed }, now) };
}
