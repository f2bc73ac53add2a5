import { describe, expect, test } from 'vitest';
import { isOwnedBy } from '../kubevirt/ownership.ts';
import {
  attemptOf,
  childMetadata,
  claimPrefix,
  clonedPrefix,
  dataVolumeName,
  prefixKey,
  snapshotName,
  sourceDigest,
} from './identity.ts';
import type { ImageSpec, VMDiskImage } from './resource.ts';

const spec: ImageSpec = { secretRef: '', url: 'http://a', sourceType: 'http', diskSize: '1Gi' };
const image = (name: string, uid = '12345678-aaaa', namespace = 'farm'): VMDiskImage => ({
  metadata: { namespace, name, uid },
  spec,
});

describe('the names of children', () => {
  test.each([
    ['win', 'win-12345678-7-2'],
    ['win-7', 'win-7-12345678-7-2'],
    ['a'.repeat(253), `${'a'.repeat(40)}-12345678-7-2`],
    [`${'a'.repeat(39)}.b`, `${'a'.repeat(39)}-12345678-7-2`],
    [`${'a'.repeat(38)}-.b`, `${'a'.repeat(38)}-12345678-7-2`],
  ])('names of children of the image %s are legal and short, and identify the image', (name, expected) => {
    const snapshot = snapshotName(image(name), 7, 2);
    expect(snapshot).toBe(expected);
    expect(snapshot).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    expect(snapshot.length).toBeLessThanOrEqual(63);
    expect(attemptOf(image(name), { metadata: { name: snapshot } })).toBe(7);
    const volume = dataVolumeName(image(name), 7);
    expect(attemptOf(image(name), { metadata: { name: volume } })).toBe(7);
    expect(claimPrefix({ metadata: { namespace: 'farm', name: volume } })).toBe(prefixKey(image(name)));
    const clone = {
      metadata: { namespace: 'lab', name: 'x' },
      spec: { source: { snapshot: { namespace: 'farm', name: snapshot } } },
    };
    expect(clonedPrefix(clone)).toBe(prefixKey(image(name)));
  });

  test('names of claims and snapshots are parsed correctly even if their UID part has only digits', () => {
    const digits = image('win', '11111111-2222');
    const clone = {
      metadata: { namespace: 'lab', name: 'x' },
      spec: { source: { pvc: { namespace: 'farm', name: dataVolumeName(digits, 3) } } },
    };
    expect(clonedPrefix(clone)).toBe('farm/win-11111111');
    expect(attemptOf(digits, { metadata: { name: 'win-11111111-3-1' } })).toBe(3);
  });

  test('an object with a name that the operator did not choose has the attempt number 0 (ADOPTED)', () => {
    for (const name of ['win', 'win-12345678', 'win-12345678-x', 'other-12345678-1', 'win-12345678-1-2-3'])
      expect(attemptOf(image('win'), { metadata: { name } })).toBe(0);
  });
});

test('a child does not belong to another image of the same name', () => {
  const child = { metadata: childMetadata(image('win'), 'win-12345678-1') };
  expect(isOwnedBy(child, image('win'))).toBe(true);
  expect(isOwnedBy(child, image('win', '87654321-aaaa'))).toBe(false);
  expect(isOwnedBy({ metadata: { name: 'win-12345678-1' } }, image('win'))).toBe(false);
  for (const value of Object.values(child.metadata.labels)) expect(value.length).toBeLessThanOrEqual(63);
});

test('the source digest depends only on the spec fields that determine the imported data', () => {
  const digest = sourceDigest(spec);
  for (const same of [
    { secretRef: 'keys' },
    { retention: { keep: true } },
    { maxClones: 3 },
    { name: 'n' },
    { certConfigMap: 'c' },
  ])
    expect(sourceDigest({ ...spec, ...same })).toBe(digest);
  for (const other of [
    { url: 'http://b' },
    { diskSize: '2Gi' },
    { storageClass: 's' },
    { checksum: 'md5:1' },
    { sourceType: 's3' as const },
  ])
    expect(sourceDigest({ ...spec, ...other })).not.toBe(digest);
  const { url: _, ...blank } = { ...spec, sourceType: 'blank' as const };
  expect(sourceDigest({ ...blank, url: 'not-provided' })).toBe(sourceDigest(blank));
});
