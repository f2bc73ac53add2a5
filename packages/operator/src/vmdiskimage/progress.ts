import { conditionOf, keyOf } from '@vmwright/runtime';
import type { DataVolume, ForeignCondition } from '../kubevirt/kinds.ts';
import { timeOf } from '../times.ts';
import { withoutCredentials } from './errors.ts';
import type { Observed } from './observe.ts';
import type { VMDiskImage } from './resource.ts';
import type { Reported } from './status.ts';

/** Steps in which the progress is reported, in percent, so that an import causes few writes. */
const STEP = 5;

/**
 * Sets the progress of the import and, if the progress has grown, the time of the last progress. Growth by less than a
 * step is recorded only if the last recorded growth is at least `stalledAfterMs / 2` ago. If such growth were never
 * recorded, a slow import of a large disk would be reported as stalled.
 */
export function withProgress(image: Reported, { volume, limits }: Observed, now: number): Reported {
  const { attempt, progress: before = 0 } = image.status;
  if (attempt === undefined || volume === undefined) return image;
  const percent = percentOf(volume);
  const progress = percent === 100 ? percent : Math.floor(percent / STEP) * STEP;
  const isDue = now - progressedAt(image) >= limits.syncs.stalledAfterMs / 2;
  const hasGrown = progress > before || (isDue && percent > (attempt.percent ?? before));
  // Stores the importer's error for the message of a later failure, such as too many restarts. When CDI counts a
  // restart, it has already removed the error of the importer's previous run from the DataVolume.
  const error = withoutCredentials(image, importerMessage(volume));
  const current = {
    ...attempt,
    ...(error !== '' && { importerError: error }),
    ...(hasGrown && { progressedAt: timeOf(now), percent }),
  };
  return {
    ...image,
    status: { ...image.status, dataVolume: volume.metadata.name, progress, attempt: current },
  };
}

/**
 * Returns the progress as an integer; below 100 until CDI reports success, because CDI converts the disk after the
 * download.
 */
function percentOf({ status }: DataVolume): number {
  if (status?.phase === 'Succeeded') return 100;
  const percent = Number.parseFloat(status?.progress ?? '');
  return Number.isNaN(percent) ? 0 : Math.max(0, Math.min(Math.floor(percent), 99));
}

/** Returns the time of the last progress of an attempt, in milliseconds. */
export function progressedAt({ status: { attempt } }: Reported): number {
  return Date.parse(attempt?.progressedAt ?? attempt?.startedAt ?? '');
}

/** Phases of a DataVolume in which CDI's importer is responsible for the progress. */
const IMPORTING: ReadonlySet<string> = new Set(['ImportScheduled', 'ImportInProgress', 'Paused']);

/** Returns the object that an import waits for, and its state. */
export function blockerOf(image: VMDiskImage, observed: Observed): string {
  const { volume, claim, snapshots, storageClass } = observed;
  if (volume === undefined) return 'the DataVolume does not exist yet';
  const name = keyOf(volume.metadata);
  const phase = volume.status?.phase ?? 'none';
  if (phase === 'Succeeded') {
    const [snapshot] = snapshots;
    return snapshot === undefined
      ? `no VolumeSnapshot of the PersistentVolumeClaim ${name} exists yet`
      : `the VolumeSnapshot ${keyOf(snapshot.metadata)} is not ready; check the VolumeSnapshotClass and the snapshot controller`;
  }
  // A volume populator keeps the claim Pending until the import has finished. So a Pending claim does not block a
  // running importer.
  if (claim?.status?.phase !== 'Bound' && !IMPORTING.has(phase)) {
    const state = claim === undefined ? 'does not exist' : `is ${claim.status?.phase ?? 'Pending'}`;
    const bound = said(image, conditionOf(volume.status?.conditions, 'Bound'));
    return storageClass ?? `the PersistentVolumeClaim ${name} ${state}${bound}`;
  }
  return `the importer of the DataVolume ${name} is in phase ${phase}${said(image, conditionOf(volume.status?.conditions, 'Running'))}`;
}

/** Reasons with which CDI reports that an importer has not started yet, or that it has ended without an error. */
const NO_ERRORS: ReadonlySet<string> = new Set([
  ...['Pending', 'Unschedulable', 'ContainerCreating', 'PodInitializing', 'Completed'],
]);

/** Returns the error with which CDI's importer stopped; the empty string if it runs, is about to start, or is done. */
export function importerMessage(volume: DataVolume): string {
  const { reason = '', message = '', status } = conditionOf(volume.status?.conditions, 'Running') ?? {};
  if (status !== 'False' || NO_ERRORS.has(reason)) return '';
  return [reason, message].filter((part) => part !== '').join(': ');
}

function said(image: VMDiskImage, condition: ForeignCondition | undefined): string {
  const { reason = '', message = '' } = condition ?? {};
  const parts = [reason, message].filter((part) => part !== '');
  return parts.length === 0 ? '' : ` (${withoutCredentials(image, parts.join(': '))})`;
}
