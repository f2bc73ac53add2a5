import { field, type KubeObject } from '../../kubernetes/api.ts';

/** Annotation on a DataVolume that selects the behaviour of its import. */
const ANNOTATION = 'testbed.vmwright.dev/import';

/** Behaviour of an import. If no field is set, the import succeeds in about a second. */
export interface ImportBehaviour {
  /** Whether every step takes ten times as long. */
  readonly slow?: boolean;
  /** Whether the import stays in progress until the behaviour changes. */
  readonly hangs?: boolean;
  /** Whether the claim is never bound. */
  readonly unbound?: boolean;
  /** Which DataVolumes end in the phase Failed: all (`always`), or only the first one with this URL (`first`). */
  readonly fails?: 'always' | 'first';
  /** Number of times that the importer exits with an error before it succeeds. */
  readonly crashes?: number;
  /** Whether the errors in `crashes` occur after the download instead of on the connection to the source. */
  readonly crashesLate?: boolean;
  /** Termination message of the importer. @default CDI's message for a connection that ended too early */
  readonly message?: (source: ImportSource) => string;
}

export interface ImportSource {
  readonly url: string;
  readonly checksum: string | undefined;
}

const httpError = (status: string) => () =>
  `Unable to connect to http data source: expected status code 200, got ${status.slice(0, 3)}. Status: ${status}`;

/** Returns a function that creates CDI's message for an S3 error. The message names the bucket and the object's key. */
const s3Error = (cause: string) => (source: ImportSource) =>
  `Unable to connect to s3 data source: could not get s3 object: "${pathOf(source.url)}": ${cause}`;

const REQUEST = '4442587FB7D0A2F9';

/*
 * If an import fails because of the source, CDI restarts the importer's pod forever and never sets the phase Failed.
 * Only the pod's termination message distinguishes a missing source from a flaky network. The messages are the same as
 * in CDI.
 */
const BEHAVIOURS: Readonly<Record<string, ImportBehaviour>> = {
  slow: { slow: true },
  hang: { hangs: true },
  unbound: { unbound: true },
  fail: { fails: 'always' },
  'fail-once': { fails: 'first' },
  'fail-3-times': { crashes: 3 },
  crash: {
    crashes: Number.POSITIVE_INFINITY,
    message: ({ url }) =>
      `Unable to connect to http data source: HTTP request errored: Get "${url}": dial tcp: i/o timeout`,
  },
  missing: { crashes: Number.POSITIVE_INFINITY, message: httpError('404 Not Found') },
  forbidden: { crashes: Number.POSITIVE_INFINITY, message: httpError('403 Forbidden') },
  unauthorized: { crashes: Number.POSITIVE_INFINITY, message: httpError('401 Unauthorized') },
  // The next two messages have different formats: older versions of CDI use version 1 of the AWS SDK, newer ones
  // version 2.
  's3-missing': {
    crashes: Number.POSITIVE_INFINITY,
    message: s3Error(
      `NoSuchKey: The specified key does not exist.\n\tstatus code: 404, request id: ${REQUEST}, host id: `,
    ),
  },
  's3-forbidden': {
    crashes: Number.POSITIVE_INFINITY,
    message: s3Error(
      `operation error S3: GetObject, https response error StatusCode: 403, RequestID: ${REQUEST}, HostID: , api error AccessDenied: Access Denied`,
    ),
  },
  'registry-missing': {
    crashes: Number.POSITIVE_INFINITY,
    message: ({ url }) =>
      `Unable to process data: Failed to read registry image: reading manifest latest in ${pathOf(url)}: manifest unknown`,
  },
  checksum: {
    crashes: Number.POSITIVE_INFINITY,
    crashesLate: true,
    message: ({ checksum = `sha256:${'0'.repeat(64)}` }) =>
      `Unable to process data: checksum mismatch: expected ${checksum}, calculated ${checksum.replace(/[^:]*$/, (digits) => 'f'.repeat(digits.length))}`,
  },
};

/**
 * Returns the behaviour that a DataVolume selects by its annotation or by its URL. A URL that contains
 * `/behaviour/<name>/` selects `<name>`. On hosts in the domain `example`, a path that begins with `/<name>/` is
 * enough. Tests of VMDiskImages use the URL, because a VMDiskImage cannot annotate its DataVolume.
 */
export function behaviourOf(volume: KubeObject | undefined): ImportBehaviour {
  const { annotations } = volume?.metadata ?? {};
  const name = annotations?.[ANNOTATION] ?? behaviourInUrl(sourceOf(volume).url);
  return BEHAVIOURS[name ?? ''] ?? {};
}

/** Returns the source that the importer of a DataVolume reads. */
export function sourceOf(volume: KubeObject | undefined): ImportSource {
  const source = field(volume, 'spec', 'source');
  const urls = ['http', 's3', 'registry'].map((type) => field(source, type, 'url'));
  const checksum = field(source, 'http', 'checksum');
  return {
    url: String(urls.find((url) => url !== undefined) ?? ''),
    checksum: typeof checksum === 'string' ? checksum : undefined,
  };
}

function behaviourInUrl(url: string): string | undefined {
  return (
    /\/behaviour\/([^/]+)\//.exec(url)?.[1] ?? /^[\w-]+:\/\/(?:[^/]*\.)?example\/([^/]+)\//.exec(url)?.[1]
  );
}

function pathOf(url: string): string {
  return url.replace(/^[\w-]+:\/\/[^/]*\//, '');
}
