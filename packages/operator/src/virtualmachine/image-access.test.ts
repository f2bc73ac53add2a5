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
  ['may use and create an image in its own namespace', undefined, undefined, NONE, 'use, create'],
  ['may use and create an image in its own namespace, if set', 'work', undefined, NONE, 'use, create'],
  ['may not use an image in another namespace by default', 'farm', undefined, NONE, 'nothing'],
  ['may use images in allowed namespaces', 'farm', undefined, { ...NONE, imageNamespaces: ['farm'] }, 'use'],
  [
    'may use and create an image in any namespace, if both settings are *',
    'farm',
    undefined,
    { imageNamespaces: ['*'], imageCreationNamespaces: ['*'] },
    'use, create',
  ],
  [
    'may use and create an image in a namespace that is allowed for creation',
    'farm',
    undefined,
    { imageNamespaces: ['farm'], imageCreationNamespaces: ['farm'] },
    'use, create',
  ],
  ['may use an image that is shared with its namespace', 'farm', 'a, work', NONE, 'use'],
  ['may use an image that is shared with all namespaces', 'farm', '*', NONE, 'use'],
  ['may not use an image that is shared only with another namespace', 'farm', 'working', NONE, 'nothing'],
] as const)('a VirtualMachine %s', ([, namespace, sharedWith, settings, expected]) => {
  const shared = sharedWith === undefined ? undefined : image(sharedWith);
  const { mayUse, mayCreate } = imageAccessOf(vm(namespace), shared, settings);
  const allowed = [...(mayUse ? ['use'] : []), ...(mayCreate ? ['create'] : [])];
  expect(allowed.join(', ') || 'nothing').toBe(expected);
});
