import type { ConditionDoc, OutcomeWith, ReasonOf } from '../docs/conditions.ts';

/**
 * Conditions of a VMDiskImage. The reasons that the code may report are derived from this table, and so is
 * docs/vmdiskimage.md.
 */
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
    meaning:
      'The image waits because of the limit of concurrent syncs (`--image-sync-concurrency`), or until objects of its previous import are deleted.',
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
    meaning: 'The URL, bucket, key or tag does not exist. The operator does not try again.',
    remedy:
      'Correct `spec.url`, or upload the disk image and set the annotation `vmwright.dev/retry` to a new value.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['SourceForbidden'],
    meaning: 'The source rejects the request (HTTP 401, 403). The operator does not try again.',
    remedy:
      'Set `spec.secretRef`, or correct the Secret in `spec.secretRef` and set the annotation `vmwright.dev/retry` to a new value.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ChecksumMismatch'],
    meaning: 'The downloaded data does not match `spec.checksum`. The operator does not try again.',
    remedy:
      'Correct `spec.checksum`, or correct the disk image and set the annotation `vmwright.dev/retry` to a new value.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ChecksumUnsupported'],
    meaning:
      'The installed version of CDI ignores `spec.checksum`. The operator stops the import and does not try again.',
    remedy:
      'Remove `spec.checksum`, or update CDI to 1.65 or later and set the annotation `vmwright.dev/retry` to a new value.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['SyncTimeout'],
    meaning:
      'The image was not imported within `--image-sync-timeout` from the start of the first attempt. The operator does not try again.',
    remedy:
      'Remove the cause in the message, or raise `--image-sync-timeout`. Then set the annotation `vmwright.dev/retry` to a new value.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ImportFailed', 'TooManyRestarts'],
    meaning:
      'CDI reports a failure of the import, or restarted the importer more often than `--image-sync-restarts` allows.',
    remedy: 'Remove the cause that CDI reports in the message. The operator tries again.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['AttemptTimeout'],
    meaning: 'The import or the snapshot took longer than `--image-sync-attempt-timeout`.',
    remedy:
      'Check the object in the message, and the bandwidth to the source. If the import needs more time, raise `--image-sync-attempt-timeout`. The operator tries again.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['SnapshotFailed', 'SnapshotRejected'],
    meaning: 'The VolumeSnapshot has an error, or the API server rejects the VolumeSnapshot.',
    remedy: 'Read the message, and check `spec.snapshotClass`. The operator tries again.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['DataVolumeLost', 'ClaimLost'],
    meaning: 'The DataVolume of the import, its PersistentVolumeClaim or its PersistentVolume was deleted.',
    remedy: 'Wait. The operator tries again.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['DataVolumeRejected'],
    meaning:
      'The API server or CDI rejects the DataVolume, or a DataVolume of another owner has the same name. The operator does not try again if the DataVolume is invalid (HTTP 400, 422). It tries again in all other cases, for example if a quota forbids the DataVolume (HTTP 403).',
    remedy:
      'Read the message. Correct `spec`, the permissions of the operator or the quota of the namespace, or delete the other DataVolume.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Paused'],
    meaning: 'The image was paused before it was imported.',
    remedy: 'Remove the annotation `vmwright.dev/paused`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Deleting'],
    meaning: 'The image is being deleted.',
    remedy: 'Wait. If `Stalled` is True, remove the cause that the message names.',
  },
  {
    type: 'Progressing',
    status: 'True',
    reasons: ['Importing', 'Snapshotting'],
    meaning: 'The import or the snapshot makes progress. Absent while the image is not being synced.',
    remedy: 'Nothing.',
  },
  {
    type: 'Progressing',
    status: 'False',
    reasons: ['NoProgress'],
    meaning:
      'The import or the snapshot has made no progress for longer than `--image-stalled-after`. The message names the object that blocks it, such as the StorageClass, the claim or the importer.',
    remedy: 'Check the object that the message names.',
  },
  {
    type: 'DeletionBlocked',
    status: 'True',
    reasons: ['Referenced'],
    meaning:
      'The image is being deleted, but objects still use it. The message names the first of these objects.',
    remedy:
      'Delete the VirtualMachines and DataVolumes in `status.referencedBy`, or wait until they are deleted.',
  },
] as const satisfies readonly ConditionDoc[];

export type VMDiskImageReason = ReasonOf<typeof CONDITIONS>;
export type VMDiskImageOutcome = OutcomeWith<VMDiskImageReason>;
