import { expect, test } from 'vitest';
import type { PersistentVolumeClaim } from './kinds.ts';
import { filesystemOverhead, requiredSpace } from './overhead.ts';

const GIB = 2 ** 30;
const claim = (volumeMode: string, storageClassName: string): PersistentVolumeClaim => ({
  metadata: { name: 'root' },
  spec: { volumeMode, storageClassName },
});
const config = {
  metadata: { name: 'config' },
  status: { filesystemOverhead: { global: '0.06', storageClass: { nfs: '0.1', broken: 'x' } } },
};

test.for([
  ['the global overhead', claim('Filesystem', 'fast'), config, 0.06],
  ["the storage class's own overhead", claim('Filesystem', 'nfs'), config, 0.1],
  ['no overhead if CDI reports an illegal value', claim('Filesystem', 'broken'), config, 0],
  ['no overhead if it is a block volume', claim('Block', 'nfs'), config, 0],
  ['no overhead if CDI does not report one', claim('Filesystem', 'fast'), undefined, 0],
] as const)('the filesystem overhead of a PersistentVolumeClaim: %s', ([, object, cdi, expected]) => {
  expect(filesystemOverhead(object, cdi)).toBe(expected);
});

test('a PersistentVolumeClaim is larger than its disk by the filesystem overhead, as in CDI', () => {
  expect(requiredSpace(GIB, 0)).toBe(GIB);
  expect(requiredSpace(GIB, 0.06)).toBe(Math.ceil(GIB / 0.94));
  expect(requiredSpace(GIB + 1, 0.06)).toBe(Math.ceil((GIB + 2 ** 20) / 0.94));
});
