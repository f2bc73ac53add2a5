import { defineKind, type ObjectOf, schema } from '@vmwright/runtime';
import { CATEGORY, message, NEW_STATUS, objectName, observedGeneration, size, time } from '../schema.ts';

const { array, boolean, conditions, integer, literals, object, optional, string } = schema;

/** Default of `spec.url`; means that no URL is given. The API server stores it in objects without a URL. */
export const NO_URL = 'not-provided';

const retention = object(
  {
    pruneAfter: optional(
      string({
        description:
          'Time after which the operator deletes the image if no VirtualMachine or DataVolume uses it, such as 72h or 30m. Defaults to the setting --image-prune-after of the operator, which is 30 days unless it is changed.',
        maxLength: 32,
        rules: [
          {
            rule: "self.matches('^([0-9]+(h|m|s))+$') && duration(self) > duration('0s')",
            message: 'must be a time such as 72h or 30m',
          },
        ],
      }),
    ),
    keep: optional(
      boolean({
        description: 'Whether the operator keeps the image even if nothing uses it. false by default.',
      }),
    ),
  },
  { description: 'Settings for the automatic deletion of the image when nothing uses it.' },
);

/** Fields of a VMDiskImage's spec. A VirtualMachine's template for its image has the same fields. */
export const imageFields = {
  secretRef: string({
    description:
      'Name of the Secret with the credentials of the source (accessKeyId and secretKey), in the namespace of the image. Set an empty string if the source needs no credentials.',
    maxLength: 253,
  }),
  url: optional(
    string({
      description:
        'URL of the disk image. For the sourceTypes s3 and http, it begins with https:// or http://, such as https://s3.example.com/bucket/disk.qcow2. For registry, it begins with docker:// or oci-archive://. For blank, it is not needed.',
      maxLength: 2_048,
      default: NO_URL,
    }),
  ),
  sourceType: literals(['s3', 'registry', 'blank', 'http'], {
    description:
      'Type of the source. s3: an object in an S3 bucket. http: a file on a web server. registry: a container image. blank: no source, the disk is empty.',
  }),
  diskSize: size('Size of the disk that the image is imported to, such as 20Gi.'),
  storageClass: optional(
    objectName('StorageClass of the imported disk. Defaults to the default class of the cluster.'),
  ),
  certConfigMap: optional(
    objectName(
      'ConfigMap with the CA certificates of the source, in the namespace of the image. Defaults to the public CAs.',
    ),
  ),
  snapshotClass: optional(
    objectName(
      'VolumeSnapshotClass of the snapshot that VMs are cloned from. Defaults to the default class of the storage driver.',
    ),
  ),
  name: optional(string({ description: 'Display name of the image.', maxLength: 253 })),
  checksum: optional(
    string({
      description:
        'Checksum of the disk image, such as sha256:<hex digits>. CDI compares it with the downloaded data. Only the sourceType http supports a checksum. For registry, use a URL with a digest instead.',
      maxLength: 160,
      rules: [
        {
          rule: "self.matches('^(md5:[0-9a-f]{32}|sha1:[0-9a-f]{40}|sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$')",
          message: 'must be md5:, sha1:, sha256: or sha512: and the checksum in lower-case hex digits',
        },
      ],
    }),
  ),
  retention: optional(retention),
  maxClones: optional(
    integer({
      description:
        'Maximum number of clones of one snapshot, if the storage has such a limit. When every snapshot has this number of clones, the operator takes another snapshot. Unlimited by default.',
      minimum: 1,
      format: 'int32',
    }),
  ),
};

/** Returns a CEL expression that is true if the URL begins with one of these prefixes. */
const begins = (...prefixes: readonly string[]) =>
  `(${prefixes.map((prefix) => `self.url.startsWith('${prefix}')`).join(' || ')})`;

/** Rules of an image's spec: what each source type needs. */
export const imageRules = [
  {
    rule: `self.sourceType == 'blank' || (self.url != '' && self.url != '${NO_URL}')`,
    message: 'url is required unless sourceType is blank',
    fieldPath: '.url',
  },
  {
    rule: `!(self.sourceType in ['s3', 'http']) || self.url == '${NO_URL}' || ${begins('http://', 'https://')}`,
    message:
      'url must begin with https:// or http:// for the sourceTypes s3 and http; CDI does not accept s3://, so use the URL of the S3 endpoint, such as https://s3.example.com/bucket/key',
    fieldPath: '.url',
  },
  {
    rule: `self.sourceType != 'registry' || self.url == '${NO_URL}' || ${begins('docker://', 'oci-archive://')}`,
    message: 'url must begin with docker:// or oci-archive:// for the sourceType registry',
    fieldPath: '.url',
  },
  {
    rule: "!has(self.checksum) || self.sourceType == 'http'",
    message:
      'checksum is supported only for the sourceType http; for registry, use a url with a digest (…@sha256:…)',
    fieldPath: '.checksum',
  },
];

const spec = object(imageFields, {
  description: 'Disk image to import, and how long to keep it.',
  rules: imageRules,
});

const status = object(
  {
    observedGeneration,
    phase: optional(
      literals(['Queued', 'Syncing', 'Ready', 'Failed', 'RetryableFailure', 'Deleting'], {
        description:
          'State of the image. Queued: the image waits for its import. Syncing: the image is being imported, or its snapshot is being taken. Ready: VMs can be cloned from the image. RetryableFailure: the last attempt to import the image failed, and the operator tries again. Failed: the operator does not try again until the spec changes or the annotation vmwright.dev/retry gets a new value. Deleting: the image is being deleted, and VMs cannot be cloned from it.',
      }),
    ),
    message,
    progress: optional(
      integer({
        description: 'Progress of the import in percent, in steps of 5.',
        minimum: 0,
        maximum: 100,
      }),
    ),
    queuedAt: time(
      'Time when the image began to wait for its import. The operator limits the number of concurrent imports (--image-sync-concurrency). Images that have waited longer are imported first.',
    ),
    attempt: optional(
      object(
        {
          number: integer({
            description:
              'Number of the attempt. The names of the DataVolume and the snapshots of the attempt contain this number. 0: an earlier controller imported the image, and the operator uses that DataVolume and its snapshots.',
          }),
          startedAt: string({
            description: 'Time when the attempt started.',
            format: 'date-time',
          }),
          progressedAt: time('Time when the import last made progress.'),
          percent: optional(
            integer({
              description: 'Progress of the import in percent at progressedAt.',
              minimum: 0,
              maximum: 100,
            }),
          ),
          importerError: optional(
            string({ description: 'Why the importer of CDI last stopped during this attempt.' }),
          ),
          source: string({
            description: 'Digest of the spec fields that the imported data depends on.',
          }),
          generation: optional(
            integer({
              description: 'Value of metadata.generation when the attempt started.',
              format: 'int64',
            }),
          ),
        },
        { description: 'Current or last attempt to import the image.' },
      ),
    ),
    syncStartedAt: time(
      'Start of the first attempt after the last success, change of the spec or retry (annotation vmwright.dev/retry). If the image is not imported within --image-sync-timeout from this time, the operator stops trying.',
    ),
    failureCount: optional(
      integer({
        description:
          'Number of failed attempts since the last success, change of the spec or retry (annotation vmwright.dev/retry).',
      }),
    ),
    lastFailureTime: time('Time when the last attempt failed.'),
    retryRequest: optional(
      string({ description: 'Value of the annotation vmwright.dev/retry that the operator handled last.' }),
    ),
    dataVolume: optional(string({ description: 'Name of the DataVolume of the current attempt.' })),
    snapshots: optional(
      array(
        object({
          name: string({ description: 'Name of the VolumeSnapshot.' }),
          clones: integer({ description: 'Number of clones of this snapshot.' }),
        }),
        { description: 'Snapshots that VMs can be cloned from, oldest first.', maxItems: 1_000 },
      ),
    ),
    references: optional(
      integer({
        description:
          'Number of objects that use the image. A VirtualMachine counts if its spec.vmDiskImageRef names the image and it is allowed to use the image. A DataVolume counts if it clones a snapshot or the claim of the image and does not belong to a VirtualMachine that counts. While the number is not 0, the operator does not delete the image. Exceptions: the namespace of the image is being deleted, or the image was deleted with --cascade=foreground.',
      }),
    ),
    referencedBy: optional(
      array(string(), {
        description:
          'The first 20 objects that use the image, sorted, such as "VirtualMachine default/workspace".',
        maxItems: 20,
      }),
    ),
    unreferencedSince: time(
      'Time since which the image has been Ready without a VirtualMachine or DataVolume that uses it.',
    ),
    deletionStartedAt: time(
      'Time when the operator began to delete the data of the image. The image cannot be used again from then on.',
    ),
    pruneAt: time(
      'Time when the operator deletes the image, unless a VirtualMachine or DataVolume uses it by then.',
    ),
    conditions: optional(
      conditions(
        'Ready: VMs can be cloned from the image. Progressing: False if the import makes no progress; the message names the object that blocks it. DeletionBlocked: the image is being deleted, but objects still use it. Reconciling, Stalled: as kstatus defines them. Paused: the operator observes the image and changes nothing.',
      ),
    ),
  },
  {
    description: 'Observed state of the image, written by the operator.',
    default: NEW_STATUS,
  },
);

/** A disk image that VirtualMachines are cloned from. */
export const VMDiskImage = defineKind({
  group: 'crd.pelotech.ot',
  version: 'v1alpha1',
  kind: 'VMDiskImage',
  plural: 'vmdiskimages',
  shortNames: ['vmdi'],
  categories: [CATEGORY],
  description:
    'VMDiskImage is a disk image that the operator imports into the cluster and that VirtualMachines are cloned from.',
  spec,
  status,
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Progress', type: 'integer', jsonPath: '.status.progress' },
    { name: 'References', type: 'integer', jsonPath: '.status.references' },
    { name: 'Size', type: 'string', jsonPath: '.spec.diskSize' },
    { name: 'Prune', type: 'string', jsonPath: '.status.pruneAt', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
  ],
});
export type VMDiskImage = ObjectOf<typeof VMDiskImage>;
export type VMDiskImageStatus = NonNullable<VMDiskImage['status']>;
export type ImageSpec = VMDiskImage['spec'];
