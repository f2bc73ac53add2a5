import type { Draft, EventInput, KubeObject } from '@vmwright/runtime';
import { isPaused, retryRequestOf } from '../annotations.ts';
import type { DataVolume, VolumeSnapshot } from '../kubevirt/kinds.ts';
import { timeOf } from '../times.ts';
import { adopted, isFromOtherController } from './adoption.ts';
import { dataVolumeFor, snapshotFor } from './children.ts';
import {
  type Child,
  hasImportedDisk,
  leftovers,
  nameOf,
  obsoleteChildren,
  remains,
  snapshotChild,
  unfinishedImports,
} from './cleanup.ts';
import type { Failure, FailureReason } from './errors.ts';
import { attemptEndsAt, backoffMs, failureOf, snapshotFailsAt, syncEndsAt, syncTimeout } from './failures.ts';
import { dataVolumeName, sourceDigest } from './identity.ts';
import type { Observed } from './observe.ts';
import { blockerOf, progressedAt, withProgress } from './progress.ts';
import type { VMDiskImage, VMDiskImageStatus } from './resource.ts';
import { withRetention } from './retention.ts';
import { countClones, freeSnapshotName, isReadyToUse } from './snapshots.ts';
import {
  cleaning,
  enqueued,
  failed,
  paused,
  queued,
  READY_MESSAGE,
  type Reported,
  ready,
  started,
  stillFailed,
  syncing,
  withoutFailures,
  withReferences,
} from './status.ts';

/** Next step of a reconcile of an image. */
export interface Plan {
  /** Status to store before the actions are executed. */
  readonly status: VMDiskImageStatus;
  /**
   * Actions to execute after the status is stored. Afterwards, the image is observed and planned again. Without
   * actions, the reconcile ends.
   */
  readonly actions: readonly Action[];
  /** Events to record once the status is stored. @default none */
  readonly events?: readonly EventInput[];
  /**
   * Reason to count in the metric `vmwright_image_sync_failures_total`. Set only if this status is the first one that
   * reports the failure.
   */
  readonly failure?: FailureReason | undefined;
  /** Time in milliseconds after which the image is reconciled again even if nothing has changed. */
  readonly requeueAfterMs?: number;
}

export type Action =
  | { readonly type: 'acquireSlot' | 'releaseSlot' }
  | { readonly type: 'createVolume'; readonly volume: Draft<DataVolume> }
  | { readonly type: 'createSnapshot'; readonly snapshot: Draft<VolumeSnapshot> }
  | { readonly type: 'delete'; readonly child: Child }
  /** Deletes the image, unless a reference has appeared. */
  | { readonly type: 'prune' };

/**
 * Requeue interval while the image waits for an event, such as a free slot. It limits the wait if the event is missed.
 */
const SAFETY_MS = 60_000;

/** Phases of a DataVolume in which its importer has ended. */
const ENDED: ReadonlySet<string> = new Set(['Succeeded', 'Failed']);

/**
 * Plans the next step for an image that is not being deleted, or that is being deleted but still referenced.
 *
 * Each attempt is stored in the status, with a resourceVersion precondition, before its DataVolume is created. The name
 * of the DataVolume contains the number of the attempt. So if a creation is repeated after a crash, it requests the
 * same object and not a second one.
 *
 * A snapshot is taken only after the import has succeeded. The image is Ready only if the DataVolume, its claim and at
 * least one usable snapshot exist and belong to the image.
 */
export function plan(stored: VMDiskImage, observed: Observed, now: number): Plan {
  const image = withReferences(stored, observed, now);
  const { phase, attempt } = image.status;
  if (isPaused(image)) return planPaused(image, observed, now);
  const isOtherSource = attempt !== undefined && attempt.source !== sourceDigest(image.spec);
  const enqueue = () => planQueued(enqueued(withoutFailures(image)), observed, now);
  switch (phase) {
    case 'Queued':
      return planQueued(isOtherSource ? withoutFailures(image) : image, observed, now);
    case 'Syncing':
      return isOtherSource || attempt === undefined ? enqueue() : planSyncing(image, observed, now);
    case 'Ready':
      if (isOtherSource || !hasData(observed)) return enqueue();
      return planReady(isFromOtherController(image) ? adopted(image, observed, now) : image, observed, now);
    case 'RetryableFailure':
    case 'Failed': {
      const retry = retryRequestOf(image);
      const isRequested = retry !== undefined && retry !== image.status.retryRequest;
      return isOtherSource || isOtherSpec(image) || isRequested
        ? enqueue()
        : planFailed(image, observed, now);
    }
    default: // the image is new, or is Deleting and got a reference before anything was deleted
      return enqueue();
  }
}

/**
 * Plans for an image that is paused. Once its importer has ended, its slot is released for other images. If the disk is
 * imported, the image returns to the queue. If the import failed, the failure is reported. All other steps wait until
 * the image is resumed.
 */
function planPaused(image: Reported, observed: Observed, now: number): Plan {
  const { slot, volume, obsolete } = observed;
  const { phase } = image.status;
  const hasEnded = [volume ?? [], obsolete.volumes]
    .flat()
    .every(({ status }) => ENDED.has(status?.phase ?? ''));
  if (slot !== 'held' || !hasEnded) return { status: paused(image, now).status, actions: [] };
  const actions = [{ type: 'releaseSlot' }] as const;
  if (phase !== 'Syncing') return { status: paused(image, now).status, actions };
  if (hasImportedDisk(observed))
    return { status: paused(queued(enqueued(image), observed, now), now).status, actions };
  const failure = volume === undefined ? undefined : failureOf(image, observed, now);
  if (failure === undefined) return { status: paused(image, now).status, actions: [] };
  return { ...planFailure(image, failure, observed, now), actions };
}

/**
 * Whether the spec has changed since the attempt began. Every field counts. For example, a new `secretRef` does not
 * change the data, but can remove the cause of a failure. A deletion also increases the generation, but does not change
 * the spec.
 */
function isOtherSpec({ metadata, status: { attempt } }: Reported): boolean {
  if (attempt?.generation === undefined || metadata.deletionTimestamp !== undefined) return false;
  return attempt.generation !== metadata.generation;
}

/** Whether the current import attempt has a disk and a usable snapshot, from which VMs can be cloned. */
function hasData(observed: Observed): boolean {
  return hasImportedDisk(observed) && observed.snapshots.some(isReadyToUse);
}

function planQueued(image: Reported, observed: Observed, now: number): Plan {
  const { attempt } = image.status;
  const isSameSource = attempt?.source === sourceDigest(image.spec);
  if (isSameSource && hasData(observed)) return planReady(image, observed, now);
  // The time limit of the whole sync applies only to downloads. An imported disk gets its snapshot even after this
  // time.
  const isImported = isSameSource && hasImportedDisk(observed);
  if (!isImported && now >= syncEndsAt(image, observed))
    return planFailure(image, syncTimeout(observed), observed, now);
  const rest = leftovers(image, observed);
  const [first] = rest;
  if (first !== undefined) return removing(cleaning(image, nameOf(first), now), rest);
  const waiting = queued(image, observed, now);
  if (observed.slot === 'held') return planStart(image, observed, now);
  if (observed.slot === 'none') return { status: waiting.status, actions: [{ type: 'acquireSlot' }] };
  const untilEndMs = isImported ? SAFETY_MS : syncEndsAt(image, observed) - now;
  return { status: waiting.status, actions: [], requeueAfterMs: Math.min(SAFETY_MS, untilEndMs) };
}

function planStart(image: Reported, observed: Observed, now: number): Plan {
  const { attempt } = image.status;
  const isImported = attempt?.source === sourceDigest(image.spec) && hasImportedDisk(observed);
  const number = isImported ? attempt.number : observed.lastAttempt + 1;
  const begun = started(image, number, isImported, now);
  const action: Action = isImported
    ? takeSnapshot(begun, observed)
    : { type: 'createVolume', volume: dataVolumeFor(begun, number) };
  return { status: begun.status, actions: [action] };
}

function planSyncing(image: Reported, observed: Observed, now: number): Plan {
  const { slot, volume, snapshots, limits } = observed;
  // A Syncing image has no slot only if a user changed the ConfigMap or the status. It gets the next free slot, before
  // all Queued images.
  if (slot === 'none') return { status: image.status, actions: [{ type: 'acquireSlot' }] };
  if (slot === 'waiting') return { status: image.status, actions: [], requeueAfterMs: SAFETY_MS };
  if (hasData(observed)) return planReady(image, observed, now);
  const failure = failureOf(image, observed, now);
  if (failure !== undefined) return planFailure(image, failure, observed, now);
  if (!hasImportedDisk(observed) && now >= syncEndsAt(image, observed))
    return planFailure(image, syncTimeout(observed), observed, now);
  const current = withProgress(image, observed, now);
  const stallsAt = progressedAt(current) + limits.syncs.stalledAfterMs;
  const { status } = syncing(current, now >= stallsAt ? blockerOf(image, observed) : undefined, now);
  const unfinished = removing(image, unfinishedImports(observed));
  if (unfinished.actions.length > 0) return { ...unfinished, status };
  if (volume === undefined)
    return {
      status,
      actions: [{ type: 'createVolume', volume: dataVolumeFor(image, status.attempt?.number ?? 0) }],
    };
  if (hasImportedDisk(observed) && snapshots.every(isTerminating))
    return { status, actions: [takeSnapshot(current, observed)] };
  const deadlines = [
    ...[attemptEndsAt(image, observed), syncEndsAt(image, observed)],
    ...[snapshotFailsAt(observed), stallsAt],
  ];
  const next = Math.min(...deadlines.filter((time) => time > now));
  return { status, actions: [], requeueAfterMs: Math.min(next - now, SAFETY_MS) };
}

function planFailure(image: Reported, failure: Failure, observed: Observed, now: number): Plan {
  const { failureCount = 0 } = image.status;
  const nextAt = now + backoffMs(failureCount + 1, observed.limits.syncs);
  // If the next attempt would begin after the time limit of the whole sync, this failure is final.
  const isLast = !failure.isTerminal && nextAt >= syncEndsAt(image, observed);
  const final = isLast ? syncTimeout(observed, failure) : failure;
  const after = failed(image, final, now);
  const note = after.status.message ?? final.message;
  return {
    status: after.status,
    actions: removing(after, remains(after, observed)).actions,
    events: [{ type: 'Warning', reason: final.reason, note }],
    failure: final.reason,
    requeueAfterMs: 0,
  };
}

/**
 * Plans for an image after a failed attempt: deletes the children of the attempt, releases the slot, and tries again
 * after the back-off.
 */
function planFailed(image: Reported, observed: Observed, now: number): Plan {
  const { phase, failureCount = 0, lastFailureTime = timeOf(0) } = image.status;
  const { status } = stillFailed(image, now);
  const rest = remains(image, observed);
  // Only an importer needs the slot. So the slot is released even if snapshots still have to be deleted.
  const isImporting = rest.some(({ childKind }) => childKind === 'DataVolume');
  if (observed.slot === 'held' && !isImporting) return { status, actions: [{ type: 'releaseSlot' }] };
  if (rest.length > 0) return removing({ ...image, status }, rest);
  if (phase === 'Failed') return { status, actions: [] };
  const nextAt = Date.parse(lastFailureTime) + backoffMs(failureCount, observed.limits.syncs);
  if (now >= nextAt) return planQueued(enqueued(image), observed, now);
  return { status, actions: [], requeueAfterMs: nextAt - now };
}

function planReady(image: Reported, observed: Observed, now: number): Plan {
  const { phase, pruneAt: announced } = image.status;
  const { status } = withRetention(ready(image, observed, now), observed, now);
  const { pruneAt } = status;
  // If a snapshot that was taken because of `maxClones` does not become ready, it is deleted and taken again.
  const pending = observed.snapshots.filter((each) => !isTerminating(each) && !isReadyToUse(each));
  const endsAt = (snapshot: VolumeSnapshot) =>
    Date.parse(snapshot.metadata.creationTimestamp ?? '') + observed.limits.syncs.maxAttemptMs;
  const stuck = pending.filter((snapshot) => endsAt(snapshot) <= now);
  const pruneInMs = pruneAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(pruneAt) - now;
  const actions: Action[] = [
    ...removing(image, [...obsoleteChildren(observed), ...stuck.map(snapshotChild)]).actions,
    ...(observed.slot === 'held' ? [{ type: 'releaseSlot' } as const] : []),
    ...(needsSnapshot(image, observed) ? [takeSnapshot(image, observed)] : []),
    // The image is pruned only if an earlier plan has announced the current `pruneAt` in an Event.
    ...(pruneInMs <= 0 && announced === pruneAt ? [{ type: 'prune' } as const] : []),
  ];
  const events: EventInput[] = [];
  if (phase !== 'Ready') events.push({ type: 'Normal', reason: 'Synced', note: READY_MESSAGE });
  if (pruneAt !== undefined && announced !== pruneAt)
    events.push({ type: 'Normal', reason: 'PruneScheduled', note: pruneNote(pruneAt) });
  const requeueMs = Math.min(pruneInMs, ...pending.map((snapshot) => endsAt(snapshot) - now));
  const requeue = Number.isFinite(requeueMs) && { requeueAfterMs: Math.max(0, requeueMs) };
  return { status, actions, events, ...requeue };
}

/** Whether every snapshot is ready and has `maxClones` clones, so that another snapshot has to be taken. */
function needsSnapshot({ spec: { maxClones } }: VMDiskImage, { snapshots, users }: Observed): boolean {
  if (maxClones === undefined) return false;
  return snapshots
    .filter((snapshot) => !isTerminating(snapshot))
    .every((snapshot) => isReadyToUse(snapshot) && countClones(snapshot.metadata.name, users) >= maxClones);
}

function takeSnapshot(image: Reported, { volume, snapshotNames }: Observed): Action {
  const number = image.status.attempt?.number ?? 0;
  const claim = volume?.status?.claimName ?? dataVolumeName(image, number);
  const name = freeSnapshotName(image, number, snapshotNames);
  return { type: 'createSnapshot', snapshot: snapshotFor(image, name, claim) };
}

/** Returns a plan that deletes children, or waits while they are terminating. */
function removing({ status }: Reported, children: readonly Child[]): Plan {
  const actions = children
    .filter((child) => !isTerminating(child))
    .map((child) => ({ type: 'delete', child }) as const);
  return { status, actions, requeueAfterMs: SAFETY_MS };
}

function pruneNote(pruneAt: string): string {
  return `The image is deleted at ${pruneAt} unless a VirtualMachine refers to it by then; set spec.retention.keep to keep it`;
}

function isTerminating({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}
