import { expect, test } from 'vitest';
import { place } from './admission.ts';
import type { Pod, PodSpec } from './kinds.ts';
import { placementOf } from './placement.ts';
import type { Reservation } from './reservation.ts';
import type { GPUInfo, GPUInfoStatus } from './resource.ts';

const NOW = Date.parse('2026-11-17T12:00:00Z');
const term = (node: string) => ({ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] });

function info(status: Partial<GPUInfoStatus> = {}, metadata = {}): GPUInfo {
  const reservation = { namespace: 'ml', name: 'training', gpus: 1, seconds: 360_000 };
  return {
    metadata: { namespace: 'ml', name: 'training', uid: 'uid-1', generation: 1, ...metadata },
    spec: { desAccTime: 100, gpuRequired: true },
    status: {
      observedGeneration: 1,
      phase: 'Reserved',
      suitableNodeName: 'node-1',
      placement: placementOf(reservation, { name: 'node-1', resource: 'nvidia.com/gpu' }),
      ...status,
    },
  };
}

function held(fields: Partial<Reservation> = {}): Reservation {
  return {
    key: 'ml/training',
    generation: 1,
    node: 'node-1',
    pool: 'node-1',
    gpus: 1,
    from: NOW - 3_600_000,
    until: NOW + 3_600_000,
    ...fields,
  };
}

function pod(spec: PodSpec = {}): Pod {
  return {
    metadata: { name: 'p', labels: { 'vmwright.dev/gpuinfo': 'training' }, annotations: { own: 'x' } },
    spec: { containers: [{ name: 'main' }], ...spec },
  };
}

function placed(given: Pod, of = info(), reservation = held()): Pod {
  const result = place(given, of, reservation, NOW);
  if ('allowed' in result) throw new Error(result.message);
  return result;
}

const termsOf = ({ spec }: Pod) =>
  spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;

test('a pod gets a node affinity for the reserved node and a deadline at the end of its reservation', () => {
  expect(placed(pod())).toEqual({
    metadata: {
      name: 'p',
      labels: { 'vmwright.dev/gpuinfo': 'training' },
      annotations: { own: 'x', 'vmwright.dev/gpuinfo-uid': 'uid-1' },
    },
    spec: {
      containers: [{ name: 'main' }],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term('node-1')] },
        },
      },
      tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists', effect: 'NoSchedule' }],
      activeDeadlineSeconds: 3_600,
    },
  });
});

const zone = { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] };
const affinity = (...nodeSelectorTerms: readonly object[]) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});

test('the reserved node is added to each non-empty term of the node affinity of a pod', () => {
  expect(termsOf(placed(pod(affinity(zone, term('other'), {}))))).toEqual([
    { ...zone, ...term('node-1') },
    { matchFields: [...term('other').matchFields, ...term('node-1').matchFields] },
    {},
  ]);
});

test('placing a pod keeps the other parts of its affinity', () => {
  const own = {
    podAntiAffinity: { x: 1 },
    nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1 }] },
  };
  expect(placed(pod({ affinity: own })).spec?.affinity).toMatchObject(own);
});

test('placing a pod twice changes nothing the second time', () => {
  for (const given of [pod(), pod(affinity(zone)), pod({ activeDeadlineSeconds: 5, tolerations: [] })]) {
    const once = placed(given);
    expect(place(once, info(), held(), NOW + 60_000)).toEqual(once);
  }
});

test('placing a pod keeps the deadline and the tolerations that the pod has', () => {
  const tolerations = [{ key: 'nvidia.com/gpu', operator: 'Equal', value: 'present', effect: 'NoSchedule' }];
  const { spec } = placed(pod({ activeDeadlineSeconds: 60, tolerations }));
  expect([spec?.activeDeadlineSeconds, spec?.tolerations]).toEqual([60, tolerations]);
});

test.each([
  ['the end of the reservation', {}, {}, 3_600],
  [
    'the start of maintenance before the end of the reservation',
    { availableUntil: '2026-11-17T12:10:00Z' },
    {},
    600,
  ],
  [
    'the end of the reservation if maintenance begins later',
    { availableUntil: '2026-11-17T15:00:00Z' },
    {},
    3_600,
  ],
  [
    'the start of maintenance if the reservation has no end',
    { availableUntil: '2026-11-17T12:10:00Z' },
    { until: undefined },
    600,
  ],
  [
    'nothing if neither an end nor maintenance is known',
    { availableAcceleratorTime: 8_760 },
    { until: undefined },
    undefined,
  ],
] as const)('the run time of a pod is limited by %s', (_, status, reservation, seconds) => {
  expect(placed(pod(), info(status), held(reservation)).spec?.activeDeadlineSeconds).toBe(seconds);
});

const requesting = (gpus: number): PodSpec => ({
  containers: [{ name: 'main', resources: { limits: { 'nvidia.com/gpu': String(gpus) } } }],
});

test('a pod that requests as many GPUs as are reserved is accepted', () => {
  expect(placed(pod(requesting(2)), info(), held({ gpus: 2 })).spec?.containers).toHaveLength(1);
});

test.each<[string, Reservation | undefined, Partial<GPUInfoStatus>, PodSpec, RegExp]>([
  [
    'it requests more GPUs than are reserved',
    held(),
    {},
    requesting(2),
    /requests 2 GPUs, but .* has reserved 1 GPU. Raise gpuCount .* to 2/,
  ],
  [
    'it requests a GPU and the reserved node has none',
    held({ gpus: 0 }),
    {},
    requesting(1),
    /requests 1 GPU, but .* node without GPUs/,
  ],
  ['the reservation has moved', held({ node: 'node-2' }), {}, {}, /is changing from node node-1 to node-2/],
  ['the reservation is gone', undefined, {}, {}, /is changing from node node-1 to none/],
  ['the stored reservation has ended', held({ ended: { at: NOW, reason: 'JobEnded' } }), {}, {}, /has ended/],
  ['the time of the reservation has passed', held({ until: NOW }), {}, {}, /has ended/],
  [
    'maintenance has begun',
    held(),
    { availableUntil: '2026-11-17T12:00:00Z', decidedBy: 'calendar' },
    {},
    /^Maintenance of node node-1, .* began at 2026-11-17T12:00:00Z \(calendar\)/,
  ],
])('a pod is rejected because %s', (_, reservation, status, spec, message) => {
  expect(place(pod(spec), info(status), reservation, NOW)).toEqual({
    allowed: false,
    message: expect.stringMatching(message),
  });
});

test('a wrong UID annotation of a pod is replaced by the UID of the GPUInfo', () => {
  const forged = {
    ...pod(),
    metadata: { ...pod().metadata, annotations: { 'vmwright.dev/gpuinfo-uid': 'other' } },
  };
  expect(placed(forged).metadata.annotations).toEqual({ 'vmwright.dev/gpuinfo-uid': 'uid-1' });
});

test.each<[string, GPUInfo, PodSpec, RegExp]>([
  [
    'the GPUInfo is being deleted',
    info({}, { deletionTimestamp: '2026' }),
    {},
    /ml\/training is being deleted/,
  ],
  [
    'the reservation has ended',
    info({ phase: 'Ended' }),
    {},
    /reservation of the GPUInfo ml\/training has ended/,
  ],
  [
    'no node is suitable',
    info({ phase: 'Pending', message: 'No node has a GPU' }),
    {},
    /^The GPUInfo ml\/training has no node: No node has a GPU$/,
  ],
  ['the status is older than the spec', info({}, { generation: 2 }), {}, /has no node/],
  ['the pod names another node', info(), { nodeName: 'node-2' }, /spec.nodeName is node-2, but .* node-1/],
])('a pod is rejected if %s', (_title, of, spec, message) => {
  expect(place(pod(spec), of, held(), NOW)).toEqual({
    allowed: false,
    message: expect.stringMatching(message),
  });
});

test('a pod is rejected if its GPUInfo has no status yet', () => {
  const { status: _, ...fresh } = info();
  expect(place(pod(), fresh, undefined, NOW)).toMatchObject({
    message: 'The GPUInfo ml/training has no node yet',
  });
});
