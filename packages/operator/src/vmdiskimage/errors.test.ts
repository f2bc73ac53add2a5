import { apiError } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import { classify, rejectionOf, safeUrl, withoutCredentials } from './errors.ts';
import type { VMDiskImage } from './resource.ts';

function image(name: string, url: string, secretRef = ''): VMDiskImage {
  return {
    metadata: { namespace: 'farm', name, uid: '40412345-aaaa' },
    spec: { url, secretRef, sourceType: 's3', diskSize: '1Gi' },
    status: { attempt: { number: 404, startedAt: '', source: '' } },
  };
}

const plain = image('win', 'https://images.example/win.qcow2');

test.each([
  [
    'SourceMissing',
    'Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found',
  ],
  [
    'SourceMissing',
    'could not get s3 object: "a/b": NoSuchKey: The key does not exist.\n\tstatus code: 404, request id: 1',
  ],
  ['SourceMissing', 'NoSuchBucket: The specified bucket does not exist'],
  ['SourceMissing', 'Failed to read registry image: reading manifest 1 in reg/img: manifest unknown'],
  ['SourceMissing', 'nbdkit: curl: problem doing HEAD request: The requested URL returned error: 404'],
  ['SourceForbidden', 'expected status code 200, got 403. Status: 403 Forbidden'],
  ['SourceForbidden', 'expected status code 200, got 401. Status: 401 Unauthorized'],
  ['SourceForbidden', 'AccessDenied: Access Denied\n\tstatus code: 403, request id: 7'],
  [
    'SourceForbidden',
    'https response error StatusCode: 403, RequestID: 4404, HostID: , api error Forbidden: Forbidden',
  ],
  [
    'SourceMissing',
    'https response error StatusCode: 404, RequestID: 4404, HostID: , api error NotFound: Not Found',
  ],
  ['SourceForbidden', 'Failed to read registry image: unauthorized: authentication required'],
  ['ChecksumMismatch', 'Unable to process data: checksum mismatch: expected sha256:a, got sha256:b'],
])('the final failure %s is recognized in the message: %s', (reason, message) => {
  expect(classify(plain, message)).toMatchObject({ reason, isTerminal: true });
});

test.each([
  'Unable to connect to http data source: expected status code 200, got 503. Status: 503 Service Unavailable',
  'dial tcp 10.4.0.4:404: connect: connection refused',
  'unexpected EOF after 404 bytes, request id: 403',
  'disk is 404Mi larger than the claim',
  '',
])('a failure that may be temporary is not classified as final: %s', (message) => {
  expect(classify(plain, message)).toBeUndefined();
});

describe('names that look like a failure', () => {
  test.each([
    ['a path', 'win', 'https://images.example/got%20404/win.qcow2', 'reset while reading got 404/win.qcow2'],
    [
      'an S3 key',
      'win',
      's3://bucket/NoSuchKey/AccessDenied.qcow2',
      'timeout on "bucket/NoSuchKey/AccessDenied.qcow2"',
    ],
    ['a URL', 'win', 'https://x.example/status: 404', 'reset: https://x.example/status: 404'],
    ['a name', 'got-404', 'https://x.example/a', 'pod importer-got-404-40412345-404 was evicted'],
    ['a registry', 'win', 'docker://reg/unauthorized:1', 'timeout pulling reg/unauthorized:1'],
    [
      'a whole name',
      'checksum-mismatch',
      'https://x.example/a',
      'farm/checksum-mismatch: checksum-mismatch is slow',
    ],
  ])('an image name or URL in a message is not mistaken for a failure: %s', (_, name, url, message) => {
    expect(classify(image(name, url), message)).toBeUndefined();
  });

  test('a real failure is recognized even if the name of the image looks like a failure', () => {
    const named = image('404', 'https://images.example/404/404.qcow2');
    expect(classify(named, 'expected status code 200, got 404')).toMatchObject({ reason: 'SourceMissing' });
  });
});

test('messages contain no credentials from the URL', () => {
  const signed = image('win', 'https://user:secret@x.example/a?X-Amz-Signature=secret', 'keys');
  const failure = classify(signed, 'got 403 from https://user:secret@x.example/a?X-Amz-Signature=secret');
  expect(failure?.message).not.toContain('secret@');
  expect(failure?.message).not.toContain('Signature');
  expect(failure?.message).toContain('the credentials in the Secret keys');
  expect(safeUrl('https://u:p@x.example:8443/a/b?c=d')).toBe('https://x.example:8443/a/b');
});

test.each([
  ['Get "https://u:p@cdn.example/b?X-Amz-Signature=s": EOF', 'Get "https://cdn.example/b": EOF'],
  ['redirect to https://cdn.example/b?sig=s failed', 'redirect to https://cdn.example/b failed'],
  ['via http://u:p@proxy:3128 and docker://t@reg/i', 'via http://proxy:3128 and docker://reg/i'],
  ['{\\"url\\":\\"https://u:p@x/a?b=c\\"}', '{\\"url\\":\\"https://x/a\\"}'],
  ['who? me@example.com: 3 / 4', 'who? me@example.com: 3 / 4'],
])('credentials of every URL are removed from: %s', (text, safe) => {
  expect(withoutCredentials(plain, text)).toBe(safe);
});

describe('rejected children', () => {
  const text = 'Invalid source URL scheme: ftp://user:secret@x.example/a?sig=secret';
  test.each([
    ['DataVolume', 422, 'Invalid', true],
    ['DataVolume', 400, 'BadRequest', true],
    ['DataVolume', 403, 'Forbidden', false],
    ['VolumeSnapshot', 422, 'Invalid', false],
  ] as const)('a %s rejected with code %i fails the import attempt', (child, code, reason, isTerminal) => {
    const error = apiError(text, { status: code, reason });
    const failure = child === 'DataVolume' ? 'DataVolumeRejected' : 'SnapshotRejected';
    const rejection = rejectionOf(plain, failure, error);
    expect(rejection).toMatchObject({ reason: failure, isTerminal });
    expect(rejection?.message).toContain(
      `rejected the ${child}: Invalid source URL scheme: ftp://x.example/a`,
    );
    expect(rejection?.message).not.toContain('secret');
  });

  test('an error that may be temporary is not a rejection', () => {
    expect(rejectionOf(plain, 'DataVolumeRejected', apiError('busy', { status: 500 }))).toBeUndefined();
  });
});

test('if the URL of an image cannot be parsed, the message names spec.url instead of quoting the URL', () => {
  const failure = classify(image('win', 'https://[bad/user:secret'), 'got 404 from https://[bad/user:secret');
  expect(failure?.message).toMatch(/^The source in spec\.url does not exist; correct spec\.url/);
  expect(failure?.message).not.toContain('secret');
});
