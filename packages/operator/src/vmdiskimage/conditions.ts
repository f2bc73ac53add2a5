import type { ConditionDoc, OutcomeWith, ReasonOf } from '../docs/conditions.ts';

/** Conditions of a VMDiskImage. The reasons that the code may report are derived from this table, and so is docs/vmdiskimage.md. */
export const CONDITIONS = [
  {
    type: 'Ready',
    status: 'True',
    reasons: ['Ready'],
    meaning: 'VMs can be cloned from the image.',
    remedy: 'Nothing.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Queued'],
    meaning: 'All sync slots are taken, or the disk of the previous attempt is being deleted.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Importing'],
    meaning: 'CDI imports the disk.',
    remedy: 'Wait; see `Progressing`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Snapshotting'],
    meaning: 'The disk is imported, and the snapshot is being taken.',
    remedy: 'Wait; see `Progressing`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['SourceMissing'],
    meaning: 'The URL, bucket, key or tag does not exist. No further attempt.',
    remedy: 'Correct `url`, or upload the disk image and set `vmwright.dev/retry`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['SourceForbidden'],
    meaning: 'The source rejects the request (401, 403). No further attempt.',
    remedy: 'Correct the Secret of `secretRef`, then set `vmwright.dev/retry`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ChecksumMismatch'],
    meaning: 'The downloaded data does not match `checksum`. No further attempt.',
    remedy: 'Correct `checksum` or the disk image.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ChecksumUnsupported'],
    meaning: 'The installed CDI ignores `checksum`. No further attempt, and nothing is downloaded.',
    remedy: 'Update CDI to 1.65 or later, or remove `checksum`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['SyncTimeout'],
    meaning: 'All attempts together took longer than `--image-sync-timeout`. No further attempt.',
    remedy: 'Read the message, then set `vmwright.dev/retry`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ImportFailed', 'TooManyRestarts'],
    meaning: 'CDI reports a failure, or its importer restarted more often than `--image-sync-restarts`.',
    remedy: "Read CDI's text in the message. The operator tries again.",
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['AttemptTimeout'],
    meaning: 'The import or the snapshot took longer than `--image-sync-attempt-timeout`.',
    remedy: 'Check bandwidth and size. The operator tries again.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['SnapshotFailed', 'SnapshotRejected'],
    meaning: 'The snapshot has an error, or the API server rejects it.',
    remedy: 'Check `snapshotClass`. The operator tries again.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['DataVolumeLost', 'ClaimLost'],
    meaning: 'The DataVolume or claim of the attempt was deleted.',
    remedy: 'The operator tries again.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['DataVolumeRejected'],
    meaning:
      'The API server or CDI rejects the DataVolume. No further attempt if it is invalid (400, 422); the operator tries again if it is forbidden (403), for example by a quota.',
    remedy: 'Read the message; correct the spec, or the permissions or quota.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Paused'],
    meaning: 'The image was paused before it was imported.',
    remedy: 'Remove `vmwright.dev/paused`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Deleting'],
    meaning: 'The data of the image is being deleted.',
    remedy: 'Wait.',
  },
  {
    type: 'Progressing',
    status: 'True',
    reasons: ['Importing', 'Snapshotting'],
    meaning: 'The sync makes progress. Absent while the image is not being synced.',
    remedy: 'Nothing.',
  },
  {
    type: 'Progressing',
    status: 'False',
    reasons: ['NoProgress'],
    meaning:
      'The sync has made no progress for longer than `--image-stalled-after`; the message names the object that blocks the import: StorageClass, claim, importer or snapshot.',
    remedy: 'Check that object.',
  },
  {
    type: 'DeletionBlocked',
    status: 'True',
    reasons: ['Referenced'],
    meaning: 'The image is being deleted, but is still in use; the message names the first references.',
    remedy: 'Delete these VirtualMachines or DataVolumes.',
  },
] as const satisfies readonly ConditionDoc[];

export type VMDiskImageReason = ReasonOf<typeof CONDITIONS>;
export type VMDiskImageOutcome = OutcomeWith<VMDiskImageReason>;
