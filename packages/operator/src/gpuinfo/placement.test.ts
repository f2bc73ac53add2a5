import { schema } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { placement, placementOf } from './placement.ts';

const reservation = { namespace: 'ml', name: 'training', gpus: 2, seconds: 360_000 };
const AFFINITY = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-1'] }] }],
    },
  },
};

test('GPUs that are an extended resource are requested as a resource limit, with a toleration', () => {
  expect(placementOf(reservation, { name: 'node-1', resource: 'nvidia.com/gpu' })).toEqual({
    labels: { 'vmwright.dev/gpuinfo': 'training', 'kueue.x-k8s.io/max-exec-time-seconds': '360000' },
    affinity: AFFINITY,
    activeDeadlineSeconds: 360_000,
    tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists', effect: 'NoSchedule' }],
    resources: { limits: { 'nvidia.com/gpu': '2' } },
  });
});

test('GPUs that a DRA driver manages are requested with a ResourceClaimTemplate', () => {
  expect(placementOf(reservation, { name: 'node-1', deviceClass: 'gpu.nvidia.com' })).toMatchObject({
    affinity: AFFINITY,
    resources: { claims: [{ name: 'gpu' }] },
    resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'training-gpu' }],
    resourceClaimTemplate: {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaimTemplate',
      metadata: { namespace: 'ml', name: 'training-gpu' },
      spec: {
        spec: {
          devices: {
            requests: [
              {
                name: 'gpu',
                exactly: { deviceClassName: 'gpu.nvidia.com', allocationMode: 'ExactCount', count: 2 },
              },
            ],
          },
        },
      },
    },
  });
});

test.each([
  ['a job without GPUs', { ...reservation, gpus: 0 }, { name: 'node-1' }],
  ['GPUs that Kubernetes does not know', reservation, { name: 'node-1' }],
])('the placement has no resources for %s', (_title, given, candidate) => {
  const { resources, tolerations, resourceClaimTemplate } = placementOf(given, candidate);
  expect([resources, tolerations, resourceClaimTemplate]).toEqual([undefined, undefined, undefined]);
});

test('activeDeadlineSeconds is a whole number within the range that a pod accepts', () => {
  const of = (seconds: number) =>
    placementOf({ ...reservation, seconds }, { name: 'n' }).activeDeadlineSeconds;
  expect([of(10.9), of(0), of(-5), of(1e12)]).toEqual([10, 1, 1, 2 ** 31 - 1]);
});

test('the placement omits the GPUInfo label if the name is too long for a label value', () => {
  const { labels } = placementOf({ ...reservation, name: 'x'.repeat(64) }, { name: 'n' });
  expect(Object.keys(labels ?? {})).toEqual(['kueue.x-k8s.io/max-exec-time-seconds']);
});

test('every placement matches the schema of the status', () => {
  for (const of of [{ resource: 'nvidia.com/gpu' }, { deviceClass: 'gpu.nvidia.com' }, {}])
    expect(schema.validate(placement, placementOf(reservation, { name: 'n', ...of }))).toEqual([]);
});
