import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../kubernetes/api.ts';
import { behaviourOf, sourceOf } from './import-behaviour.ts';

function volume(source: object, annotations: Record<string, string> = {}): KubeObject {
  return {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { name: 'root', uid: '1', resourceVersion: '1', annotations },
    spec: { source },
  };
}

const http = (url: string) => volume({ http: { url } });

describe('behaviours of imports', () => {
  test.each([
    'http://images.example/behaviour/hang/disk.img',
    'https://s3.us-gov-west-1.amazonaws.com/bucket/behaviour/hang/disk.qcow2',
    'http://images.example/hang/1.0.0/disk.img',
    'docker://example/hang/disk:1',
  ])('the behaviour of an import is selected by the URL %s', (url) => {
    expect(behaviourOf(http(url))).toEqual({ hangs: true });
  });

  test.each([
    'http://images.example/disk.img',
    'http://images.example/404/disk.img',
    'http://images.example/disks/hang/disk.img',
    'https://s3.us-gov-west-1.amazonaws.com/hang/disk.qcow2',
    'https://example.com/hang/disk.img',
  ])('the behaviour of an import is success for the URL %s', (url) => {
    expect(behaviourOf(http(url))).toEqual({});
  });

  test('the annotation takes precedence over the URL if both select a behaviour', () => {
    const source = { http: { url: 'http://images.example/hang/disk.img' } };
    expect(behaviourOf(volume(source, { 'testbed.vmwright.dev/import': 'slow' }))).toEqual({ slow: true });
  });
});

test('an S3 error names bucket and key as CDI does', () => {
  const object = volume({ s3: { url: 'https://s3.example/bucket/behaviour/s3-missing/disk.qcow2' } });
  expect(behaviourOf(object).message?.(sourceOf(object))).toBe(
    'Unable to connect to s3 data source: could not get s3 object: "bucket/behaviour/s3-missing/disk.qcow2": ' +
      'NoSuchKey: The specified key does not exist.\n\tstatus code: 404, request id: 4442587FB7D0A2F9, host id: ',
  );
});

test('a checksum error names the expected checksum and a different one of the same algorithm', () => {
  const checksum = `md5:${'1'.repeat(32)}`;
  const object = volume({ http: { url: 'http://images.example/checksum/disk.img', checksum } });
  expect(behaviourOf(object).message?.(sourceOf(object))).toBe(
    `Unable to process data: checksum mismatch: expected ${checksum}, calculated md5:${'f'.repeat(32)}`,
  );
});
