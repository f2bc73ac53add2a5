import { AlreadyExistsError, silentLogger } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { execute } from './execute.ts';

const vm = {
  metadata: { namespace: 'work', name: 'demo', uid: 'u-1' },
  spec: {
    resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' },
    vmDiskImageRef: { name: 'base' },
  },
};

test('an image that another VirtualMachine created at the same time is accepted without an event', async () => {
  const unused = () => Promise.reject(new Error('not expected'));
  const create = () => Promise.reject(new AlreadyExistsError('base exists', { status: 409 }));
  const spec = { secretRef: '', sourceType: 'blank', diskSize: '1Gi' } as const;
  const image = { metadata: { namespace: 'work', name: 'base' }, spec };
  const event = { type: 'Normal', reason: 'ImageCreated', note: '' } as const;
  const client = { create, apply: unused, mergePatch: unused, delete: unused };
  expect(await execute({ type: 'createImage', image, event }, vm, client, silentLogger)).toBeUndefined();
});
