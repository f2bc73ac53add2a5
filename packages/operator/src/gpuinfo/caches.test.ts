import { expect, test } from 'vitest';
import { leanClaim, leanJob, leanJobSet, leanNode, leanNodeClaim, leanPod, leanSlice } from './caches.ts';

const metadata = {
  name: 'a',
  namespace: 'default',
  uid: '1',
  resourceVersion: '7',
  creationTimestamp: '2026-11-01T00:00:00Z',
};
const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'train', uid: 'j', controller: true };

test('the cache keeps the labels of a node, but neither heartbeats nor images', () => {
  const node = {
    metadata: {
      ...metadata,
      labels: { pool: 'ml' },
      annotations: { 'vmwright.dev/maintenance-start': 'now', 'example.com/large': 'x'.repeat(9_999) },
    },
    spec: {
      providerID: 'vsphere://u',
      taints: [{ key: 'k', effect: 'NoSchedule', timeAdded: '2026' }],
      podCIDR: '1',
    },
    status: {
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: '2026', message: 'fine' },
        { type: 'MemoryPressure', status: 'False' },
        { type: 'DrainInProgress', status: 'False' },
      ],
      capacity: { cpu: '8', 'nvidia.com/gpu': '4' },
      allocatable: { cpu: '8', 'nvidia.com/gpu': '4' },
      images: [{ names: ['x'] }],
      nodeInfo: { systemUUID: 'u', kubeletVersion: 'v1' },
    },
  };
  expect(leanNode(node)).toEqual({
    metadata: {
      ...metadata,
      labels: { pool: 'ml' },
      annotations: { 'vmwright.dev/maintenance-start': 'now' },
    },
    spec: { providerID: 'vsphere://u', taints: [{ key: 'k', effect: 'NoSchedule' }] },
    status: {
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady' },
        { type: 'DrainInProgress', status: 'False' },
      ],
      capacity: { 'nvidia.com/gpu': '4' },
      allocatable: { 'nvidia.com/gpu': '4' },
      nodeInfo: { systemUUID: 'u' },
    },
  });
});

test('the cache keeps only the node and the sum of the requests of a pod', () => {
  const pod = {
    metadata: {
      ...metadata,
      labels: { app: 'x' },
      annotations: { 'vmwright.dev/gpuinfo-uid': 'no label, so it is dropped' },
      ownerReferences: [owner],
    },
    spec: {
      nodeName: 'node-1',
      containers: [{ name: 'main', image: 'x', resources: { requests: { cpu: '1', memory: '1Mi' } } }],
    },
    status: { phase: 'Running', podIP: '10.0.0.1' },
  };
  expect(leanPod(pod)).toEqual({
    metadata,
    spec: {
      nodeName: 'node-1',
      containers: [{ resources: { requests: { cpu: '1000m', memory: 2 ** 20 } } }],
    },
    status: { phase: 'Running' },
  });
  expect(JSON.stringify(leanPod(pod)).length).toBeLessThan(300);
});

test('the cache keeps the GPUInfo label, the UID annotation and the controller of a pod of a GPUInfo', () => {
  const labels = { 'vmwright.dev/gpuinfo': 'training', app: 'x' };
  const annotations = { 'vmwright.dev/gpuinfo-uid': 'u', other: 'x' };
  const pod = {
    metadata: { ...metadata, labels, annotations, ownerReferences: [owner] },
    status: { phase: 'Failed' },
  };
  expect(leanPod({ ...pod, spec: { nodeName: 'node-1', containers: [] } })).toEqual({
    metadata: {
      ...metadata,
      labels: { 'vmwright.dev/gpuinfo': 'training' },
      annotations: { 'vmwright.dev/gpuinfo-uid': 'u' },
      ownerReferences: [owner],
    },
    status: { phase: 'Failed' },
  });
});

test('the cache keeps the conditions of a Job that show its end', () => {
  const conditions = [
    { type: 'SuccessCriteriaMet', status: 'True' },
    { type: 'Complete', status: 'True', message: 'x' },
  ];
  const status = { active: 1, failed: 2, conditions };
  expect(leanJob({ metadata, status })).toEqual({
    metadata,
    status: { conditions: [{ type: 'Complete', status: 'True' }] },
  });
});

test('for a Job of a GPUInfo, the cache keeps only the GPUInfo label and the number of failed pods', () => {
  const template = { metadata: { labels: { 'vmwright.dev/gpuinfo': 'training', app: 'x' } }, spec: {} };
  const status = { active: 1, failed: 2, conditions: [{ type: 'Suspended', status: 'True' }] };
  expect(leanJob({ metadata, spec: { template }, status })).toEqual({
    metadata,
    spec: { template: { metadata: { labels: { 'vmwright.dev/gpuinfo': 'training' } } } },
    status: { failed: 2 },
  });
});

test('the cache keeps the devices of a ResourceSlice that a GPU driver publishes for one node', () => {
  const pool = { name: 'node-1', generation: 1, resourceSliceCount: 1 };
  const device = {
    name: 'gpu-0',
    attributes: { productName: { string: 'A100' }, driverVersion: { version: '1.2.3' } },
    capacity: { memory: { value: '40Gi' } },
  };
  const spec = { driver: 'gpu.nvidia.com', nodeName: 'node-1', pool, devices: [device] };
  expect(leanSlice({ metadata, spec }).spec).toEqual({
    ...spec,
    devices: [{ name: 'gpu-0', attributes: { productName: { string: 'A100' } } }],
  });
  expect(leanSlice({ metadata, spec: { ...spec, driver: 'dra.net' } })).toEqual({ metadata });
  const { nodeName: _, ...shared } = spec;
  expect(leanSlice({ metadata, spec: shared })).toEqual({ metadata });
});

test('the cache keeps the allocated GPUs of a ResourceClaim and the pods that use them', () => {
  const result = { request: 'gpu', driver: 'gpu.nvidia.com', pool: 'node-1', device: 'gpu-0' };
  const status = {
    allocation: { devices: { results: [result, { ...result, driver: 'dra.net' }] }, nodeSelector: {} },
    reservedFor: [{ resource: 'pods', name: 'p', uid: 'u' }],
  };
  expect(leanClaim({ metadata, status })).toEqual({
    metadata,
    status: {
      allocation: {
        devices: { results: [{ driver: 'gpu.nvidia.com', pool: 'node-1', device: 'gpu-0' }] },
      },
      reservedFor: [{ resource: 'pods', name: 'p' }],
    },
  });
  expect(leanClaim({ metadata, status: {} })).toEqual({ metadata });
});

test('the cache keeps the node and the expiry of a NodeClaim', () => {
  const claim = {
    metadata,
    spec: { expireAfter: '720h', taints: [] },
    status: { nodeName: 'n', capacity: {} },
  };
  expect(leanNodeClaim(claim)).toEqual({
    metadata,
    spec: { expireAfter: '720h' },
    status: { nodeName: 'n' },
  });
});

test('the cache keeps the required node of a pending pod with the GPUInfo label, and the owner reference of a Job to its controller', () => {
  const labels = { 'vmwright.dev/gpuinfo': 'training' };
  const affinity = (...nodeSelectorTerms: readonly object[]) => ({
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
  });
  const term = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-1'] }] };
  const zone = { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] };
  const waiting = { metadata: { ...metadata, labels }, spec: { affinity: affinity({ ...zone, ...term }) } };
  expect(leanPod(waiting).spec).toEqual({ affinity: affinity(term) });
  expect(leanPod({ ...waiting, metadata }).spec).toBeUndefined();
  expect(leanPod({ ...waiting, spec: { affinity: affinity(zone) } }).spec).toBeUndefined();
  const job = {
    metadata: { ...metadata, ownerReferences: [owner] },
    spec: { template: { metadata: { labels } } },
  };
  expect(leanJob(job).metadata.ownerReferences).toEqual([owner]);
});

test('the cache keeps the terminal state of a JobSet and the GPUInfo labels of its pod templates', () => {
  const metadata = { name: 's', namespace: 'ml', uid: 's' };
  const template = (labels: Readonly<Record<string, string>>) => ({
    template: { spec: { template: { metadata: { labels } } } },
  });
  const gpuinfo = { 'vmwright.dev/gpuinfo': 'train' };
  const spec = { replicatedJobs: [template({ ...gpuinfo, app: 'x' }), template({ app: 'y' })] };
  expect(
    leanJobSet({
      metadata: { ...metadata, labels: { app: 'x' } },
      spec,
      status: { terminalState: 'Failed' },
    }),
  ).toEqual({
    metadata,
    spec: { replicatedJobs: [template(gpuinfo)] },
    status: { terminalState: 'Failed' },
  });
  expect(leanJobSet({ metadata, spec: {}, status: { terminalState: '' } })).toEqual({ metadata });
});
