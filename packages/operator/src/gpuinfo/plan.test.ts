import { conditionOf } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import { allocate } from './allocate.ts';
import type { Facts } from './candidate.ts';
import { HOUR_MS } from './maintenance.ts';
import { plan } from './plan.ts';
import { requestOf } from './request.ts';
import type { Reservation } from './reservation.ts';
import type { GPUInfo, GPUInfoStatus } from './resource.ts';
import { facts, gpuNode, job, NOW, node, pool } from './testing.ts';

const HORIZON_MS = 8_760 * HOUR_MS;
const at = (hours: number) => new Date(NOW + hours * HOUR_MS).toISOString();
const maintenance = (hours: number, until?: number) => [
  {
    startsAt: NOW + hours * HOUR_MS,
    ...(until !== undefined && { endsAt: NOW + until * HOUR_MS }),
    source: 'annotation vmwright.dev/maintenance-start',
  },
];

interface InfoFields {
  readonly spec?: Partial<GPUInfo['spec']>;
  readonly status?: GPUInfoStatus;
  readonly generation?: number;
  readonly paused?: boolean;
  readonly deleting?: boolean;
}

function info({
  spec = {},
  status,
  generation = 1,
  paused = false,
  deleting = false,
}: InfoFields = {}): GPUInfo {
  return {
    metadata: {
      namespace: 'ml',
      name: 'train',
      uid: 'u',
      generation,
      creationTimestamp: at(-1),
      ...(paused && { annotations: { 'vmwright.dev/paused': 'true' } }),
      ...(deleting && { deletionTimestamp: at(0), finalizers: ['example.com/audit'] }),
    },
    spec: { desAccTime: 100, gpuRequired: true, ...spec },
    ...(status && { status }),
  };
}

/** Plans an object after an allocation in which it is the only request. */
function planned(
  object: GPUInfo,
  known: Facts,
  reservations: Readonly<Record<string, Reservation>> = {},
  now = NOW,
) {
  const input = { requests: [requestOf(object)], facts: known, horizonMs: HORIZON_MS };
  const allocation = allocate({ ...input, reservations: new Map(Object.entries(reservations)) }, now);
  const verdict = allocation.verdicts.get('u');
  if (verdict === undefined) throw new Error('no verdict');
  const result = plan(object, { verdict, facts: known, allocation, horizonMs: HORIZON_MS }, now);
  const ready = conditionOf(result.status.conditions, 'Ready');
  return { ...result, ready, reservations: Object.fromEntries(allocation.reservations) };
}

/** Plans an object again with the status and the reservations of an earlier plan. */
function next(
  before: ReturnType<typeof planned>,
  known: Facts,
  fields: InfoFields = {},
  now = NOW + HOUR_MS,
) {
  return planned(info({ ...fields, status: before.status }), known, before.reservations, now);
}

const one = facts([gpuNode('gpu-1', { cpuUsage: 87.4, memoryUsage: 327.6 })], [pool('gpu-1', 2)]);

describe('suitable nodes', () => {
  test('if a node is suitable, all fields of the status are set', () => {
    const { status, ready, events, requeueAfterMs } = planned(info(), one);
    expect(status).toMatchObject({
      observedGeneration: 1,
      phase: 'Reserved',
      suitableNodeName: 'gpu-1',
      suitableHostName: 'host-of-gpu-1',
      nodeCPUUsage: 87,
      nodeMemoryUsage: 328,
      availableAcceleratorTime: 8_760,
      reservedUntil: at(100),
      decidedBy: 'horizon of 8760 h, because no maintenance is known',
      summary: '1 node: 1 suitable',
      candidates: [{ node: 'gpu-1', host: 'host-of-gpu-1', suitable: true, availableHours: 8_760 }],
      message: `1 GPU of node gpu-1 is reserved until ${at(100)}`,
      placement: { activeDeadlineSeconds: 360_000, resources: { limits: { 'nvidia.com/gpu': '1' } } },
    });
    expect(ready).toMatchObject({ status: 'True', reason: 'Reserved' });
    expect(events).toEqual([{ type: 'Normal', reason: 'Reserved', note: status.message }]);
    expect(requeueAfterMs).toBe(100 * HOUR_MS);
  });

  test('availableUntil is the start of the next maintenance of the node, and decidedBy names the source of that maintenance', () => {
    const planning = facts([gpuNode('gpu-1', { maintenance: maintenance(150.9, 160) })], [pool('gpu-1', 1)]);
    expect(planned(info(), planning).status).toMatchObject({
      availableAcceleratorTime: 150,
      availableUntil: at(150.9),
      decidedBy: 'annotation vmwright.dev/maintenance-start',
    });
  });

  test('availableUntil is not set if no maintenance is known, or if the start of the maintenance is unknown', () => {
    expect(planned(info(), one).status).not.toHaveProperty('availableUntil');
    const known = (startsAt: number) =>
      facts([gpuNode('gpu-1', { maintenance: [{ startsAt, source: 'test' }] })], [pool('gpu-1', 1)], {
        jobs: new Map([['u', job('Active', ['gpu-1'])]]),
      });
    const running = planned(info(), one);
    const begun = next(running, known(NOW - HOUR_MS)).status;
    expect(begun).toMatchObject({ availableUntil: at(-1), availableAcceleratorTime: 0 });
    expect(next(running, known(0)).status).not.toHaveProperty('availableUntil');
  });

  test('a suitable node is reserved without an end if desAccTime is 0', () => {
    const { status, requeueAfterMs } = planned(info({ spec: { desAccTime: 0 } }), one);
    expect(status).not.toHaveProperty('reservedUntil');
    expect(status.message).toBe(
      '1 GPU of node gpu-1 is reserved until the job ends or the object is deleted',
    );
    expect(requeueAfterMs).toBeUndefined();
  });
});

test('the status stays the same when only the time, the usage or other nodes have changed', () => {
  const first = planned(info(), one);
  const later = facts(
    [gpuNode('gpu-1', { cpuUsage: 5_000, memoryUsage: 9_000 }), gpuNode('gpu-2'), node('cpu')],
    [pool('gpu-1', 2), pool('gpu-2', 1)],
  );
  const again = next(first, later, {}, NOW + 50 * HOUR_MS);
  expect(again.status).toEqual(first.status);
  expect(again.events).toEqual([]);
});

test('the message of a request without a node does not change as time passes', () => {
  const busy = facts([gpuNode('gpu-1', { maintenance: maintenance(80.5, 90) })], [pool('gpu-1', 1)]);
  const first = planned(info(), busy);
  const again = next(first, busy, {}, NOW + 0.25 * HOUR_MS);
  expect(again.status).toEqual(first.status);
  expect(again.events).toEqual([]);
});

describe('no suitable node', () => {
  const blocked = { blocker: { reason: 'Unschedulable', message: 'cordoned' } } as const;
  const cases: readonly (readonly [string, Facts, Partial<GPUInfo['spec']>, string])[] = [
    ['NoNodes', facts([]), {}, 'The cluster has no nodes'],
    [
      'NoGpu',
      facts([node('a')]),
      {},
      'No node is suitable for 100 h with 1 GPU: no node has a GPU. 1 node: 1 without GPU',
    ],
    [
      'OnlyGpuNodes',
      one,
      { gpuRequired: false },
      'No node is suitable for 100 h: all nodes have GPUs. 1 node: 1 with GPU',
    ],
    [
      'NoMatchingNode',
      one,
      { nodeSelector: { zone: 'a' } },
      'No node is suitable for 100 h with 1 GPU: no node has the labels of spec.nodeSelector. 1 node: 1 with other labels',
    ],
    [
      'NoMatchingModel',
      one,
      { gpuModel: 'H100' },
      'No node is suitable for 100 h with 1 GPU: no node has GPUs that match spec.gpuModel. 1 node: 1 with another GPU model',
    ],
    [
      'TooFewGpus',
      one,
      { gpuCount: 3 },
      'No node is suitable for 100 h with 3 GPUs: no node has enough GPUs. 1 node: 1 with too few GPUs',
    ],
    [
      'NodesNotReady',
      facts([gpuNode('a', blocked)], [pool('a', 1)]),
      {},
      'No node is suitable for 100 h with 1 GPU: no job can start on the matching nodes now. 1 node: 1 unschedulable',
    ],
    [
      'AllInUse',
      facts([gpuNode('a')], [pool('a', 1, { '': 1 })]),
      {},
      'No node is suitable for 100 h with 1 GPU: pods use all matching GPUs. 1 node: 1 in use',
    ],
    [
      'TooShort',
      facts([gpuNode('a', { maintenance: maintenance(12) })], [pool('a', 1)]),
      {},
      `No node is suitable for 100 h with 1 GPU: no matching node is available long enough. 1 node: 1 with maintenance at ${at(12)}`,
    ],
    [
      'TooShort',
      one,
      { desAccTime: 9_000 },
      'No node is suitable for 9000 h with 1 GPU: no matching node is available long enough. 1 node: 1 beyond the horizon',
    ],
  ];
  test.each(cases)(
    'a request without a suitable node is reported with the reason %s',
    (reason, known, spec, message) => {
      const { status, ready, events } = planned(info({ spec }), known);
      expect(status).toMatchObject({
        phase: 'Pending',
        suitableNodeName: 'None available',
        suitableHostName: 'None available',
        nodeCPUUsage: 0,
        nodeMemoryUsage: 0,
        availableAcceleratorTime: 0,
        message,
      });
      expect(ready).toMatchObject({ status: 'False', reason });
      expect(events).toEqual([{ type: 'Warning', reason: 'NoneAvailable', note: message }]);
    },
  );

  test('a request without a suitable node has Ready Unknown if facts are missing', () => {
    const stale = { blocker: { reason: 'FactsUnknown', message: 'vCenter is stale' } } as const;
    const { ready, status } = planned(info(), facts([node('a', stale), node('b')]));
    expect(ready).toMatchObject({ status: 'Unknown', reason: 'FactsUnknown' });
    expect(status.candidates).toMatchObject([
      { node: 'a', suitable: false, reason: 'FactsUnknown', message: 'vCenter is stale' },
      { node: 'b', suitable: false, reason: 'NoGpu', message: 'it has no GPU' },
    ]);
  });

  test('the summary of a request without a suitable node has the number of nodes for each reason', () => {
    const known = facts(
      [
        ...[node('a'), node('b')],
        gpuNode('c', { maintenance: maintenance(12) }),
        gpuNode('d', { gpus: { pool: 'd', models: [] } }),
      ],
      [pool('c', 1), pool('d', 1)],
    );
    const other: Reservation = { key: 'ml/x', generation: 1, node: 'd', pool: 'd', gpus: 1, from: NOW };
    const { status, ready } = planned(info(), known, { other });
    expect(status.summary).toBe(`4 nodes: 2 without GPU, 1 reserved, 1 with maintenance at ${at(12)}`);
    expect(ready?.reason).toBe('TooShort');
    expect(status.candidates?.map(({ node: name, message }) => [name, message])).toEqual([
      ['a', 'it has no GPU'],
      ['b', 'it has no GPU'],
      ['c', `maintenance at ${at(12)} (annotation vmwright.dev/maintenance-start)`],
      ['d', 'its GPU is reserved'],
    ]);
  });

  test('the status of a request without a suitable node lists at most 50 nodes', () => {
    const many = facts(Array.from({ length: 80 }, (_, index) => node(`n${index}`)));
    const { candidates, summary } = planned(info(), many).status;
    expect(candidates).toHaveLength(50);
    expect(summary).toBe('80 nodes: 80 without GPU');
  });
});

describe('requests that fit later, or for a shorter time', () => {
  const reservation = (hours: number, fields: Partial<Reservation> = {}): Reservation => ({
    key: 'ml/other',
    generation: 1,
    node: 'a',
    pool: 'a',
    gpus: 1,
    from: NOW,
    until: NOW + hours * HOUR_MS,
    ...fields,
  });

  test('a request without a node is evaluated again when fitsIfShortenedTo decreases', () => {
    const known = facts([gpuNode('a', { maintenance: maintenance(80.5) })], [pool('a', 1)]);
    const first = planned(info(), known);
    expect(first.status.fitsIfShortenedTo).toBe(80);
    expect(first.requeueAfterMs).toBe(0.5 * HOUR_MS + 1);
    const again = next(first, known, {}, NOW + 0.5 * HOUR_MS + 1);
    expect(again.status.fitsIfShortenedTo).toBe(79);
    expect(again.requeueAfterMs).toBe(HOUR_MS);
    const open = planned(info({ spec: { desAccTime: 9_000 } }), one);
    expect(open.status.fitsIfShortenedTo, 'the horizon moves with the time').toBe(8_760);
    expect(open.requeueAfterMs).toBeUndefined();
  });

  test('a request without a node reports in fitsIfShortenedTo how much time is available', () => {
    const known = facts(
      [gpuNode('a', { maintenance: maintenance(80.9) }), gpuNode('b', { maintenance: maintenance(30) })],
      [pool('a', 1), pool('b', 1)],
    );
    const { status } = planned(info(), known);
    expect(status.fitsIfShortenedTo).toBe(80);
    expect(status, 'the end of the maintenance is unknown').not.toHaveProperty('fitsFrom');
  });

  test.each([
    ['after maintenance', maintenance(10, 20), {}, 20],
    [
      'after the second of two maintenance windows with too little time between them',
      [...maintenance(10, 20), ...maintenance(60, 70)],
      {},
      70,
    ],
    ['after a reservation', [], { x: reservation(30) }, 30],
    [
      'after the second of three reservations',
      [],
      { x: reservation(30), y: reservation(40), z: reservation(50) },
      40,
    ],
    [
      'after a reservation and maintenance',
      maintenance(35, 45),
      { x: reservation(30), y: reservation(31) },
      45,
    ],
    [
      'never, because a reservation has no end',
      [],
      { x: reservation(0, { until: undefined, gpus: 2 }) },
      undefined,
    ],
  ] as const)('a request without a node fits %s', (_, planning, reservations, hours) => {
    const known = facts([gpuNode('a', { maintenance: planning })], [pool('a', 2)]);
    const spec = {
      gpuCount: 'y' in reservations && !('z' in reservations) ? 2 : 'z' in reservations ? 1 : 2,
    };
    const held = 'z' in reservations ? { pools: new Map([['a', pool('a', 3, { '': 1 })]]) } : {};
    const { status } = planned(info({ spec }), { ...known, ...held }, reservations);
    expect(status.phase).toBe('Pending');
    expect(status.fitsFrom).toBe(hours === undefined ? undefined : at(hours));
  });
});

describe('changed results', () => {
  const two = (fields: Parameters<typeof gpuNode>[1] = {}) =>
    facts([gpuNode('a', { cpuUsage: 1, ...fields }), gpuNode('b')], [pool('a', 1), pool('b', 1)]);
  const cordoned = { blocker: { reason: 'Unschedulable', message: 'the node is cordoned' } } as const;

  test('a moved reservation is reported with the old node and the new one', () => {
    const { status, events } = next(planned(info(), two()), two(cordoned));
    expect(status.suitableNodeName).toBe('b');
    expect(events).toEqual([
      {
        type: 'Warning',
        reason: 'Moved',
        note: `Node a is no longer reserved: the node is cordoned. 1 GPU of node b is reserved until ${at(101)}`,
      },
    ]);
  });

  test('after a reservation is lost, suitableNodeName is "None available" if no other node is suitable', () => {
    const alone = facts([gpuNode('a')], [pool('a', 1)]);
    const { status, events, reservations } = next(planned(info(), alone), facts([node('cpu')]));
    expect(status).toMatchObject({ phase: 'Pending', suitableNodeName: 'None available' });
    expect(status).not.toHaveProperty('placement');
    expect(reservations).toEqual({});
    expect(events).toMatchObject([
      {
        reason: 'ReservationLost',
        note: expect.stringContaining('Node a is no longer reserved: it does not exist any more'),
      },
    ]);
  });

  test.each([
    ['paused', { paused: true }],
    ['being deleted', { deleting: true }],
  ])('Degraded says that the reservation stays because the object is %s', (state, fields) => {
    const { status } = next(planned(info(), two()), two(cordoned), fields);
    expect(status.suitableNodeName).toBe('a');
    expect(conditionOf(status.conditions, 'Degraded')?.message).toBe(
      `Node a is no longer suitable: the node is cordoned. The reservation stays because the object is ${state}`,
    );
  });

  test('Degraded is reported once when the node of a running job is no longer suitable', () => {
    const running: Pick<Facts, 'jobs'> = { jobs: new Map([['u', job('Active', ['a'])]]) };
    const first = planned(info(), two());
    const second = next(first, { ...two(cordoned), ...running });
    const message =
      'Node a is no longer suitable: the node is cordoned. The reservation stays because its job runs on the node';
    expect(second.status.suitableNodeName).toBe('a');
    expect(second.ready?.status).toBe('True');
    expect(conditionOf(second.status.conditions, 'Degraded')).toMatchObject({ status: 'True', message });
    expect(second.events).toEqual([{ type: 'Warning', reason: 'Degraded', note: message }]);
    const third = next(second, { ...two(cordoned), ...running }, {}, NOW + 2 * HOUR_MS);
    expect(third.events).toEqual([]);
    expect(third.status, 'nothing to write').toEqual(second.status);
    expect(conditionOf(next(third, { ...two(), ...running }).status.conditions, 'Degraded')).toBeUndefined();
  });

  test('Degraded is reported when pods wait for a node that is no longer reserved', () => {
    const first = planned(info(), two());
    const waiting = { jobs: new Map([['u', job('Active', [], { pinnedTo: ['a'] })]]) };
    const { status, events } = next(first, { ...two(cordoned), ...waiting });
    const message =
      'Pods of the job run on, or wait for, a instead of the reserved node b. Delete these pods: the webhook binds the pods that replace them to b';
    expect(conditionOf(status.conditions, 'Degraded')).toMatchObject({ reason: 'PodsOnOtherNode', message });
    expect(events).toMatchObject([{ reason: 'Moved' }, { reason: 'Degraded', note: message }]);
  });

  test('events report a new host of the reserved node, and newly planned maintenance', () => {
    const first = planned(info(), two());
    const moved = two({ host: 'esx-2', maintenance: maintenance(200) });
    expect(next(first, moved).events).toEqual([
      { type: 'Normal', reason: 'HostChanged', note: 'Node a moved from host host-of-a to esx-2' },
      {
        type: 'Warning',
        reason: 'AvailabilityReduced',
        note: `Node a is available only until ${at(200)} (annotation vmwright.dev/maintenance-start)`,
      },
    ]);
  });

  test('the end of a reservation is reported once', () => {
    const ended = next(planned(info(), two()), two(), {}, NOW + 100 * HOUR_MS);
    expect(ended.status).toMatchObject({ phase: 'Ended', suitableNodeName: 'None available' });
    expect(conditionOf(ended.status.conditions, 'Stalled')).toMatchObject({ reason: 'ReservationEnded' });
    expect(ended.events).toMatchObject([{ reason: 'ReservationEnded' }]);
    const again = next(ended, two(), {}, NOW + 101 * HOUR_MS);
    expect(again.status).toEqual(ended.status);
    expect(next(ended, two(), { generation: 2 }, NOW + 101 * HOUR_MS).status.phase).toBe('Reserved');
  });

  test('if the facts of a reserved node become unknown, the status keeps the last known facts', () => {
    const first = planned(info(), two({ maintenance: maintenance(200) }));
    const stale = { blocker: { reason: 'FactsUnknown', message: 'stale' } } as const;
    const unknown = facts([node('a', stale), gpuNode('b')], [pool('b', 1)], {
      warnings: [{ message: 'vCenter is stale', nodes: ['a'] }],
    });
    const { conditions, ...kept } = next(first, unknown).status;
    const { conditions: _, ...before } = first.status;
    expect(kept).toEqual(before);
    expect(conditionOf(conditions, 'FactsComplete')).toMatchObject({
      status: 'False',
      message: 'vCenter is stale',
    });
  });
});

test('a node without GPUs is reported as selected, not as reserved', () => {
  const { status } = planned(info({ spec: { gpuRequired: false } }), facts([node('cpu-a')]));
  expect(status.message).toBe(`Node cpu-a is selected until ${at(100)}`);
});

test('the status of a paused object lists candidates, but the object gets no reservation', () => {
  const { status, ready, reservations } = planned(info({ paused: true }), one);
  expect(reservations).toEqual({});
  expect(ready).toMatchObject({ status: 'False', reason: 'Paused' });
  expect(conditionOf(status.conditions, 'Paused')?.status).toBe('True');
  expect(status.candidates).toMatchObject([{ node: 'gpu-1', suitable: true }]);
});

test('an object that is being deleted gets no reservation and is not reported as paused', () => {
  const { status, ready, reservations } = planned(info({ deleting: true }), one);
  expect(reservations).toEqual({});
  expect(ready).toMatchObject({ status: 'False', reason: 'Deleting' });
  expect(conditionOf(status.conditions, 'Paused')?.status).not.toBe('True');
});

test('the condition FactsComplete names the first 5 warnings and the number of further warnings', () => {
  const warnings = Array.from({ length: 7 }, (_, index) => ({ message: `node n${index} is odd` }));
  const { status } = planned(info(), { ...one, warnings });
  expect(conditionOf(status.conditions, 'FactsComplete')?.message).toBe(
    'node n0 is odd; node n1 is odd; node n2 is odd; node n3 is odd; node n4 is odd; and 2 more',
  );
});

test('a warning about a node is reported only if the node matches the selector or is reserved', () => {
  const nodes = ['a', 'b'].map((name) => gpuNode(name, { labels: { name } }));
  const known = facts(nodes, [pool('a', 1), pool('b', 1)], {
    warnings: [
      { message: 'all are odd' },
      ...['a', 'b'].map((name) => ({ message: `${name} is odd`, nodes: [name] })),
    ],
  });
  const message = ({ status }: ReturnType<typeof planned>) =>
    conditionOf(status.conditions, 'FactsComplete')?.message;
  const onA = planned(info({ spec: { nodeSelector: { name: 'a' } } }), known);
  expect(message(onA)).toBe('all are odd; a is odd');
  expect(message(planned(info(), known))).toBe('all are odd; a is odd; b is odd');
  const nowhere = planned(info({ spec: { nodeSelector: { name: 'c' } } }), {
    ...known,
    warnings: known.warnings.slice(1),
  });
  expect(message(nowhere)).toBeUndefined();
  // While a job runs, its node stays reserved even if the labels of the node no longer match. So warnings about the
  // node are still reported.
  const jobs = new Map([['u', job('Active', ['a'])]]);
  const relabelled = facts([gpuNode('a')], [pool('a', 1)], { jobs, warnings: known.warnings });
  expect(message(next(onA, relabelled, { spec: { nodeSelector: { name: 'a' } } }))).toBe(
    'all are odd; a is odd',
  );
});

test('a status that is based on simulated facts has the condition Simulated', () => {
  const { status } = planned(info(), { ...one, isSimulated: true });
  expect(conditionOf(status.conditions, 'Simulated')).toMatchObject({ status: 'True' });
});
