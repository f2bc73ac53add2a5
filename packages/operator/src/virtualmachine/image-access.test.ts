import { expect, test } from 'vitest';
import { imageAccessOf } from './image-access.ts';
import type { VirtualMachine } from './resource.ts';

const vm = (namespace: string | undefined): VirtualMachine => ({
  metadata: { namespace: 'work', name: 'demo' },
  spec: {
    resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' },
    vmDiskImageRef: { name: 'base', ...(namespace !== undefined && { namespace }) },
  },
});
const image = (sharedWith: string) => ({
  metadata: { namespace: 'farm', name: 'base', annotations: { 'vmwright.dev/shared-with': sharedWith } },
});
const NONE = { imageNamespaces: [], imageCreationNamespaces: [] };

test.for([
  ['its own namespace by default', undefined, undefined, NONE, 'use, create'],
  ['its own namespace if it is named', 'work', undefined, NONE, 'use, create'],
  ['another namespace by default', 'farm', undefined, NONE, 'nothing'],
  ['an allowed namespace', 'farm', undefined, { ...NONE, imageNamespaces: ['farm'] }, 'use'],
  [
    'a namespace with *',
    'farm',
    undefined,
    { imageNamespaces: ['*'], imageCreationNamespaces: ['*'] },
    'use, create',
  ],
  [
    'a namespace that is allowed for creation',
    'farm',
    undefined,
    { imageNamespaces: ['farm'], imageCreationNamespaces: ['farm'] },
    'use, create',
  ],
  ['an image that is shared with its namespace', 'farm', 'a, work', NONE, 'use'],
  ['an image that is shared with all', 'farm', '*', NONE, 'use'],
  ['an image that is shared with others', 'farm', 'working', NONE, 'nothing'],
] as const)('a VirtualMachine with an image in %s', ([, namespace, sharedWith, settings, expected]) => {
  const shared = sharedWith === undefined ? undefined : image(sharedWith);
  const { mayUse, mayCreate } = imageAccessOf(vm(namespace), shared, settings);
  const allowed = [...(mayUse ? ['use'] : []), ...(mayCreate ? ['create'] : [])];
  expect(allowed.join(', ') || 'nothing').toBe(expected);
});
