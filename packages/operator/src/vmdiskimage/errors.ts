import { BadRequestError, ForbiddenError, InvalidError, keyOf, messageOf } from '@vmwright/runtime';
import type { VMDiskImageReason } from './conditions.ts';
import { dataVolumeName } from './identity.ts';
import { NO_URL, type VMDiskImage } from './resource.ts';

/** Reasons of failed attempts. Conditions, Events and the metric of failures report them. */
export const FAILURE_REASONS = [
  'SourceMissing',
  'SourceForbidden',
  'ChecksumMismatch',
  'ChecksumUnsupported',
  'ImportFailed',
  'TooManyRestarts',
  'AttemptTimeout',
  'SyncTimeout',
  'DataVolumeLost',
  'DataVolumeRejected',
  'ClaimLost',
  'SnapshotFailed',
  'SnapshotRejected',
] as const satisfies readonly VMDiskImageReason[];

export type FailureReason = (typeof FAILURE_REASONS)[number];

/** Why an attempt failed. The message is the same on every retry. */
export interface Failure {
  readonly reason: FailureReason;
  /** What failed, on which object, and what the user can do. */
  readonly message: string;
  /**
   * Whether another attempt cannot succeed. The operator then does not try again by itself, because downloads cost
   * money.
   */
  readonly isTerminal: boolean;
}

/**
 * Patterns in the messages of CDI's importer and of its HTTP, S3 and registry clients. A bare number never matches,
 * because it may be a part of a size, a request id or a name.
 */
const PATTERNS: readonly (readonly [FailureReason, RegExp])[] = [
  ['ChecksumMismatch', /\bchecksum (mismatch|does not match|verification failed)\b/i],
  ['SourceMissing', /\bgot (404|410)\b|\bstatus ?(code)?:? (404|410)\b|\breturned error: (404|410)\b/i],
  ['SourceMissing', /\b(NoSuchKey|NoSuchBucket|NoSuchVersion)\b|\bmanifest unknown\b|\bname unknown\b/],
  ['SourceForbidden', /\bgot (401|403)\b|\bstatus ?(code)?:? (401|403)\b|\breturned error: (401|403)\b/i],
  [
    'SourceForbidden',
    /\b(AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch)\b|\bunauthorized(:|$)|\brequested access to the resource is denied\b/im,
  ],
];

/** Derives from a message of CDI why the source cannot be imported; undefined if another attempt may succeed. */
export function classify(image: VMDiskImage, text: string): Failure | undefined {
  const plain = withoutNames(image, text);
  const reason = PATTERNS.find(([, pattern]) => pattern.test(plain))?.[0];
  if (reason === undefined) return undefined;
  const message = `${sentenceFor(reason, image)}. CDI reports: ${withoutCredentials(image, text)}`;
  return { reason, message, isTerminal: true };
}

/** User and password of a URL in a text. */
const USER_INFO = /([a-z][a-z0-9+.-]*:\/\/)[^\s/?#"'<>\\]*@/gi;
/** Query and fragment of a URL in a text. */
const QUERY = /([a-z][a-z0-9+.-]*:\/\/[^\s?#"'<>\\]*)[?#][^\s"'<>\\]*/gi;

/**
 * Removes the user, password and query of every URL in a text of another program. All URLs are covered, because a
 * source may redirect the importer to a presigned URL. Also removes line breaks, which messages of S3 contain.
 */
export function withoutCredentials({ spec: { url } }: VMDiskImage, text: string): string {
  // The image's own URL is replaced first: it may contain characters that end a match of the patterns below.
  const known = url === undefined || url === NO_URL ? text : text.replaceAll(url, safeUrl(url));
  const safe = known.replaceAll(USER_INFO, '$1').replaceAll(QUERY, '$1');
  return safe.replaceAll(/\s+/g, ' ').trim();
}

/**
 * Returns the failure of an attempt if the API server rejects its child; undefined if the error is not a rejection.
 * Only an invalid DataVolume is a final failure, because it stays invalid until the spec changes. Permissions, quotas
 * and snapshot classes can be corrected without a change of the spec.
 */
export function rejectionOf(
  image: VMDiskImage,
  reason: 'DataVolumeRejected' | 'SnapshotRejected',
  error: unknown,
): Failure | undefined {
  const isInvalid = error instanceof InvalidError || error instanceof BadRequestError;
  if (!isInvalid && !(error instanceof ForbiddenError)) return undefined;
  const child = reason === 'SnapshotRejected' ? 'VolumeSnapshot' : 'DataVolume';
  const message = `The API server rejected the ${child}: ${withoutCredentials(image, messageOf(error))}`;
  return { reason, message, isTerminal: isInvalid && reason === 'DataVolumeRejected' };
}

function sentenceFor(reason: FailureReason, { spec: { url, secretRef } }: VMDiskImage): string {
  const source = URL.canParse(url ?? '') ? `The source ${safeUrl(url)}` : 'The source in spec.url';
  switch (reason) {
    case 'SourceMissing':
      return `${source} does not exist; correct spec.url or upload the disk image`;
    case 'SourceForbidden':
      return secretRef === ''
        ? `${source} rejects requests without credentials; set spec.secretRef`
        : `${source} rejects the credentials in the Secret ${secretRef}; correct them`;
    default:
      return `${source} does not match spec.checksum; correct the checksum or the disk image`;
  }
}

/** Returns a URL without user, password and query, which may contain credentials (a presigned S3 URL). */
export function safeUrl(url: string | undefined): string {
  const parsed = url === undefined ? null : URL.parse(url);
  if (parsed === null) return 'the source in spec.url';
  return `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}

/** Names that are also part of a failure pattern. Removing them from a message would hide the failure. */
const PATTERN_WORDS = /^(\d+|unauthorized|checksum|status|code|got|manifest|name)$/;

/** Removes the URL and the names of the image's objects. Otherwise a name with "404" could look like a failure. */
function withoutNames(image: VMDiskImage, text: string): string {
  const { metadata, spec, status } = image;
  const names = [
    ...urlForms(spec.url),
    keyOf(metadata),
    ...(status?.attempt === undefined ? [] : [dataVolumeName(image, status.attempt.number)]),
    metadata.name,
  ].filter((name) => name.length > 2 && !PATTERN_WORDS.test(name));
  // The longest name is removed first, because a DataVolume's name contains the name of its image.
  return names
    .toSorted((a, b) => b.length - a.length)
    .reduce((rest, name) => rest.replaceAll(name, '…'), text);
}

/**
 * Returns the forms in which programs print a URL: whole, without scheme, without query, and only its path. Each
 * form is also returned percent-decoded.
 */
function urlForms(url: string | undefined): readonly string[] {
  const parsed = url === undefined || url === NO_URL ? null : URL.parse(url);
  if (url === undefined || parsed === null) return [];
  const path = parsed.pathname.replace(/^\/+/, '');
  const forms = [
    url,
    parsed.href,
    safeUrl(url),
    url.replace(/^[a-z0-9-]+:\/\//, ''),
    `${parsed.host}/${path}`,
    path,
  ];
  return forms.flatMap((form) => [form, decoded(form)]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
