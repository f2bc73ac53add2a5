import { expect, test } from 'vitest';
import { admitVmDiskImages } from './admission.ts';

const IMAGE = {
  metadata: { namespace: 'farm', name: 'base', uid: 'u-1', resourceVersion: '1' },
  spec: { secretRef: '', sourceType: 'blank', diskSize: '1Gi' },
} as const;

test.each([
  ['jane', 'Foreground', false],
  ['jane', 'Background', true],
  ['system:serviceaccount:kube-system:namespace-controller', 'Foreground', true],
])(
  'while the controller is off, %s with the propagation policy %s may delete an image: %s',
  (username, propagation, isAllowed) => {
    const { validate } = admitVmDiskImages(undefined);
    const verdict = validate?.(IMAGE, {
      operation: 'DELETE',
      propagation,
      dryRun: false,
      signal: new AbortController().signal,
      uid: 'r-1',
      name: 'base',
      namespace: 'farm',
      subresource: '',
      user: { username, groups: [], extra: {} },
    });
    expect(verdict).toMatchObject({ allowed: isAllowed });
  },
);
