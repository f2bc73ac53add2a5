import fc from 'fast-check';
import { expect, test } from 'vitest';
import { leanPod } from './caches.ts';
import type { Container, Pod } from './kinds.ts';
import { podRequests } from './pod-requests.ts';

const container = (requests: Record<string, string>, more: Partial<Container> = {}): Container => ({
  resources: { requests },
  ...more,
});

test.each([
  ['no containers', {}, { cpuMillicores: 0, memoryBytes: 0, accelerators: {} }],
  [
    'the sum of the containers',
    { containers: [container({ cpu: '250m', memory: '1Gi' }), container({ cpu: '1', memory: '512Mi' })] },
    { cpuMillicores: 1_250, memoryBytes: 1.5 * 2 ** 30, accelerators: {} },
  ],
  [
    'its limits where requests are missing',
    { containers: [{ resources: { limits: { 'nvidia.com/gpu': 2, cpu: '2' } } }] },
    { cpuMillicores: 2_000, memoryBytes: 0, accelerators: { 'nvidia.com/gpu': 2 } },
  ],
  [
    'as much as the largest init container if that exceeds the sum of the containers',
    {
      initContainers: [container({ cpu: '3', 'nvidia.com/gpu': '4' }), container({ cpu: '1' })],
      containers: [container({ cpu: '2', 'nvidia.com/gpu': '1' })],
    },
    { cpuMillicores: 3_000, memoryBytes: 0, accelerators: { 'nvidia.com/gpu': 4 } },
  ],
  [
    'sidecars beside the containers and the later init containers',
    {
      initContainers: [container({ cpu: '1' }, { restartPolicy: 'Always' }), container({ cpu: '3' })],
      containers: [container({ cpu: '2' })],
    },
    { cpuMillicores: 4_000, memoryBytes: 0, accelerators: {} },
  ],
  [
    'the overhead of the runtime class',
    { containers: [container({ cpu: '1' })], overhead: { cpu: '100m', memory: '64Mi' } },
    { cpuMillicores: 1_100, memoryBytes: 64 * 2 ** 20, accelerators: {} },
  ],
  [
    'the requests of the pod instead of those of its containers',
    { containers: [container({ cpu: '1', 'amd.com/gpu': '1' })], resources: { requests: { cpu: '4' } } },
    { cpuMillicores: 4_000, memoryBytes: 0, accelerators: { 'amd.com/gpu': 1 } },
  ],
  [
    'no resources that are not accelerators, and no zeros',
    { containers: [container({ 'example.com/license': '1', 'nvidia.com/gpu': '0' })] },
    { cpuMillicores: 0, memoryBytes: 0, accelerators: {} },
  ],
  [
    'nothing for a text that is not a quantity',
    { containers: [container({ cpu: 'many' })] },
    { cpuMillicores: 0, memoryBytes: 0, accelerators: {} },
  ],
])('a pod requests %s', (_title, spec, expected) => {
  expect(podRequests(spec)).toEqual(expected);
});

const quantities = fc.record(
  {
    cpu: fc.constantFrom('0', '100m', '1', '1.5'),
    memory: fc.constantFrom('64Mi', '1Gi', '1000'),
    'nvidia.com/gpu': fc.constantFrom('0', '1', '8'),
    'amd.com/gpu': fc.constantFrom('1', '2'),
    'example.com/license': fc.constantFrom('1'),
  },
  { requiredKeys: [] },
);
const containers = fc.array(
  fc.record({ resources: fc.record({ requests: quantities }), restartPolicy: fc.constantFrom('Always', '') }),
  { maxLength: 3 },
);

test('a pod that is reduced for the cache keeps its requests', () => {
  fc.assert(
    fc.property(containers, containers, quantities, (initContainers, others, overhead) => {
      const pod: Pod = {
        metadata: { name: 'a' },
        spec: { nodeName: 'node', initContainers, containers: others, overhead },
        status: { phase: 'Running' },
      };
      const lean = leanPod(pod);
      expect(podRequests(lean.spec ?? {})).toEqual(podRequests(pod.spec ?? {}));
      expect(leanPod(lean)).toEqual(lean);
    }),
  );
});
