import { describe, expect, test } from 'vitest';
import { allocate } from './allocate.ts';
import type { AllocationInput } from './allocation.ts';
import type { Blocker, Candidate, Facts } from './candidate.ts';
import { HOUR_MS } from './maintenance.ts';
import { IDLE_MS } from './observed-reservation.ts';
import type { Reported } from './reported.ts';
import type { Request } from './request.ts';
import { formatReservation, type Reservation } from './reservation.ts';
import { facts, gpuNode, job, NOW, node, pool, request } from './testing.ts';

const HORIZON_MS = 8_760 * HOUR_MS;

type Given = Partial<Omit<AllocationInput, 'reservations'>> & {
  readonly reservations?: Readonly<Record<string, Reservation>>;
};

function run({ reservations = {}, ...given }: Given, now = NOW) {
  const input = { requests: [], facts: facts([]), horizonMs: HORIZON_MS, ...given };
  return allocate({ ...input, reservations: new Map(Object.entries(reservations)) }, now);
}

/** Returns the reserved node of each request by UID of the GPUInfo; undefined if the request has no node. */
function nodes(given: Given, now = NOW): Record<string, string | undefined> {
  const { verdicts } = run(given, now);
  return Object.fromEntries([...verdicts].map(([uid, { reservation }]) => [uid, reservation?.node]));
}

const held = (nodeName: string, fields: Partial<Reservation> = {}): Reservation => ({
  key: 'ml/a',
  generation: 1,
  node: nodeName,
  pool: nodeName,
  gpus: 1,
  from: NOW,
  until: NOW + 100 * HOUR_MS,
  ...fields,
});

/** Returns a maintenance. Its start and end are given in hours after `NOW`. */
const maintenance = (start: number, end?: number) => [
  {
    startsAt: NOW + start * HOUR_MS,
    endsAt: end === undefined ? undefined : NOW + end * HOUR_MS,
    source: 'test',
  },
];

describe('suitability', () => {
  const blocked = (reason: Blocker['reason']): Partial<Candidate> => ({
    blocker: { reason, message: reason },
  });
  const cases: readonly (readonly [string, Candidate, Partial<Request>, Facts['pools'] | undefined])[] = [
    ['it has a GPU', node('n'), {}, undefined],
    ['it has no GPU (for a request that needs none)', gpuNode('n'), { gpus: 0 }, undefined],
    ['it has enough GPUs', gpuNode('n'), { gpus: 3 }, undefined],
    ['it has the labels of the selector', gpuNode('n'), { nodeSelector: { zone: 'a' } }, undefined],
    ['its GPUs have the requested model', gpuNode('n'), { model: 'NVIDIA-H100*' }, undefined],
    ['it is ready', gpuNode('n', blocked('NotReady')), {}, undefined],
    ['it is schedulable', gpuNode('n', blocked('Unschedulable')), {}, undefined],
    ['it has no taint', gpuNode('n', blocked('Tainted')), {}, undefined],
    ['its machine is powered on', gpuNode('n', blocked('PoweredOff')), {}, undefined],
    ['its host is connected', gpuNode('n', blocked('HostUnavailable')), {}, undefined],
    ['its host is not in maintenance', gpuNode('n', blocked('HostInMaintenance')), {}, undefined],
    ['its facts are known', gpuNode('n', blocked('FactsUnknown')), {}, undefined],
    [
      'no maintenance begins during the requested time',
      gpuNode('n', { maintenance: maintenance(99) }),
      {},
      undefined,
    ],
    [
      'no maintenance is in progress',
      gpuNode('n', { maintenance: maintenance(-1, 1) }),
      { hours: 0 },
      undefined,
    ],
    ['the requested time is within the horizon', gpuNode('n'), { hours: 8_761 }, undefined],
    ['its GPUs are free', gpuNode('n'), {}, new Map([['n', pool('n', 2, { '': 2 })]])],
    ['its GPU pool is known', gpuNode('n'), {}, new Map()],
  ];
  test.each(cases)(
    'a node is suitable only if %s',
    (_, candidate, fields, pools = new Map([['n', pool('n', 2)]])) => {
      const given = { requests: [request('a', fields)], facts: { ...facts([candidate]), pools } };
      expect(nodes(given)).toEqual({ a: undefined });
    },
  );

  test.each([
    ['maintenance begins at the end of the requested time', { maintenance: maintenance(100) }, {}],
    ['maintenance is over', { maintenance: maintenance(-2, 0) }, {}],
    [
      'the time exceeds the horizon, but the next maintenance is known and begins later',
      { maintenance: maintenance(9_000) },
      { hours: 8_800 },
    ],
    ['the model matches the requested pattern, ignoring case', {}, { model: '*a100*40gb' }],
    ['the model equals the requested model, ignoring case', {}, { model: 'nvidia-A100-SXM4-40GB' }],
    ['the labels match', { labels: { zone: 'a', rack: '1' } }, { nodeSelector: { zone: 'a' } }],
    ['the request needs all GPUs of the node', {}, { gpus: 2 }],
  ] as const)('a node is suitable if %s', (_, candidate, fields) => {
    const given = {
      requests: [request('a', fields)],
      facts: facts([gpuNode('n', candidate)], [pool('n', 2)]),
    };
    expect(nodes(given)).toEqual({ a: 'n' });
  });

  test.each([
    ['A100', false],
    ['*A100', false],
    ['NVIDIA-*-40GB', true],
    ['*', true],
    ['NVIDIA*NVIDIA*', false],
    ['*40GB*40GB', false],
  ])('whether the pattern %s matches the GPU model of a node: %s', (model, matches) => {
    const given = { requests: [request('a', { model })], facts: facts([gpuNode('n')], [pool('n', 1)]) };
    expect(nodes(given).a !== undefined).toBe(matches);
  });
});

describe('policies', () => {
  const four = facts(
    [
      gpuNode('a', { cpuUsage: 30, memoryUsage: 10 }),
      gpuNode('b', { cpuUsage: 20, memoryUsage: 20 }),
      gpuNode('c', { cpuUsage: 20, memoryUsage: 5 }),
      gpuNode('d', { cpuUsage: 40, memoryUsage: 5 }),
    ],
    [pool('a', 4), pool('b', 2), pool('c', 2, { '': 1 }), pool('d', 8, { '': 4 })],
  );
  test.each([
    ['LeastCpu', 'b', 'ties go to the first name'],
    ['LeastMemory', 'c', 'ties go to the lowest CPU demand'],
    ['Pack', 'c', 'it has the fewest free GPUs'],
    ['Spread', 'a', 'it has the most free GPUs; ties go to the lowest CPU demand'],
  ] as const)('the policy %s chooses node %s: %s', (policy, chosen, _) => {
    expect(nodes({ requests: [request('r', { policy })], facts: four })).toEqual({ r: chosen });
  });

  test('the policies Pack and Spread compare nodes without GPUs by the number of their reservations', () => {
    const two = facts([node('a', { cpuUsage: 10 }), node('b', { cpuUsage: 20 })]);
    const both = (policy: 'Pack' | 'Spread') => {
      const requests = [
        request('first', { gpus: 0, policy, age: 1 }),
        request('second', { gpus: 0, policy }),
      ];
      return nodes({ requests, facts: two });
    };
    expect(both('Pack')).toEqual({ first: 'a', second: 'a' });
    expect(both('Spread')).toEqual({ first: 'a', second: 'b' });
  });
});

describe('several requests for one GPU', () => {
  const one = facts([gpuNode('n')], [pool('n', 1)]);

  test('requests for the same GPU are served in order of age, then of UID', () => {
    expect(nodes({ requests: [request('young'), request('old', { age: 9 })], facts: one })).toEqual({
      old: 'n',
      young: undefined,
    });
    expect(nodes({ requests: [request('b'), request('a')], facts: one })).toEqual({ a: 'n', b: undefined });
  });

  test('an older request does not take a GPU from a younger request that holds it', () => {
    const requests = [request('old', { age: 9 }), request('young')];
    expect(nodes({ requests, facts: one, reservations: { young: held('n') } })).toEqual({
      young: 'n',
      old: undefined,
    });
  });

  test('a GPU that pods use without a reservation is reserved only for the request of these pods', () => {
    const used = facts([gpuNode('n')], [pool('n', 1, { someone: 1 })]);
    expect(nodes({ requests: [request('a')], facts: used })).toEqual({ a: undefined });
    expect(nodes({ requests: [request('someone')], facts: used }), 'its own pods use the GPU').toEqual({
      someone: 'n',
    });
  });

  test('a GPU that pods of a request use goes to that request, although an older request waits', () => {
    const known = facts([gpuNode('n1')], [pool('n1', 1, { young: 1 })]);
    const requests = [request('old', { age: 1 }), request('young')];
    expect(nodes({ facts: known, requests })).toEqual({ old: undefined, young: 'n1' });
  });

  test('nodes on the same host share the GPU pool of the host, so its only GPU is reserved once', () => {
    const ofHost = { gpus: { pool: 'esx', models: [] } };
    const shared = facts([gpuNode('n1', ofHost), gpuNode('n2', ofHost)], [pool('esx', 1)]);
    const requests = [request('a', { age: 1 }), request('b')];
    expect(nodes({ requests, facts: shared })).toEqual({ a: 'n1', b: undefined });
  });

  test('a reservation and the pods that use it count as one use of a GPU', () => {
    const two = facts([gpuNode('n')], [pool('n', 2, { a: 1 })]);
    const given = {
      requests: [request('a', { age: 1 }), request('b')],
      facts: two,
      reservations: { a: held('n') },
    };
    expect(nodes(given)).toEqual({ a: 'n', b: 'n' });
  });

  test('the reservation of an object that the cache does not have yet is kept', () => {
    const { verdicts, reservations } = run({
      requests: [request('b')],
      facts: one,
      reservations: { gone: held('n') },
    });
    expect(verdicts.get('b')?.reservation).toBeUndefined();
    expect([...reservations.keys()]).toEqual(['gone']);
  });
});

describe('reservations', () => {
  const two = facts([gpuNode('a', { cpuUsage: 1 }), gpuNode('b')], [pool('a', 1), pool('b', 1)]);
  const withA = (
    fields: Partial<Candidate>,
    pools = [pool('a', 1), pool('b', 1)],
    more: Partial<Facts> = {},
  ) => facts([gpuNode('a', fields), gpuNode('b')], pools, more);
  /** The request `r` has an active job with a pod on each of these nodes. */
  const activeOn = (...names: readonly string[]): Pick<Facts, 'jobs'> => ({
    jobs: new Map([['r', job('Active', names)]]),
  });
  const blocker = { reason: 'Unschedulable', message: 'cordoned' } as const;
  const only = (given: Given, now = NOW) => {
    const { verdicts, reservations } = run({ requests: [request('r')], ...given }, now);
    return { ...verdicts.get('r'), stored: reservations.get('r') };
  };

  test('a reservation is kept while its node is suitable, even if another node is better', () => {
    const reservation = held('b');
    expect(only({ facts: two, reservations: { r: reservation } }, NOW + HOUR_MS).reservation).toBe(
      reservation,
    );
  });

  test.each([
    ['its node is cordoned', { blocker }, undefined],
    ['maintenance is planned before it ends', { maintenance: maintenance(50) }, undefined],
    ['its node has lost its GPUs', { gpus: undefined }, undefined],
    ['a pod of another workload uses its GPU', {}, [pool('a', 1, { '': 1 }), pool('b', 1)]],
  ] as const)('a reservation is made again on another node if %s', (_, fields, pools) => {
    const now = NOW + HOUR_MS;
    expect(
      only({ facts: withA(fields, pools && [...pools]), reservations: { r: held('a') } }, now).reservation,
    ).toEqual(held('b', { key: 'ml/r', from: now, until: now + 100 * HOUR_MS }));
  });

  test('a reservation of a cordoned node is dropped if no other node is suitable', () => {
    const given = {
      facts: facts([gpuNode('a', { blocker })], [pool('a', 1)]),
      reservations: { r: held('a') },
    };
    expect(only(given)).toMatchObject({ reservation: undefined, stored: undefined });
  });

  test('a reservation stays on a node with unknown facts, but no reservation is made there', () => {
    const unknown = facts([node('a', { blocker: { reason: 'FactsUnknown', message: 'stale' } })]);
    const reservation = held('a');
    expect(only({ facts: unknown, reservations: { r: reservation } })).toMatchObject({
      reservation,
      degradedBy: undefined,
    });
    expect(only({ facts: unknown }).reservation).toBeUndefined();
  });

  test('a reservation on an unsuitable node stays while its job runs, and is degraded', () => {
    expect(
      only({ facts: withA({ blocker }, undefined, activeOn('a')), reservations: { r: held('a') } }),
    ).toMatchObject({ reservation: { node: 'a', inUse: true }, degradedBy: 'Unschedulable' });
  });

  test('a reservation is made again on another node if the node of its running job is gone', () => {
    const gone = facts([gpuNode('b')], [pool('b', 1)], activeOn());
    expect(only({ facts: gone, reservations: { r: held('a', { inUse: true }) } })).toMatchObject({
      reservation: { node: 'b', isRepeated: true },
      degradedBy: undefined,
    });
  });

  test('a reservation of a paused object is neither made nor moved', () => {
    const requests = [request('r', { mayReserve: false })];
    expect(only({ requests, facts: two }).reservation).toBeUndefined();
    expect(only({ requests, facts: withA({ blocker }), reservations: { r: held('a') } })).toMatchObject({
      reservation: { node: 'a' },
      degradedBy: 'Unschedulable',
    });
    const gone = facts([gpuNode('b')], [pool('b', 1)]);
    expect(only({ requests, facts: gone, reservations: { r: held('a') } })).toMatchObject({
      reservation: { node: 'a' },
      degradedBy: 'NodeGone',
    });
  });

  test('a reservation moves to the new GPU pool of its node', () => {
    const moved = facts([gpuNode('a', { gpus: { pool: 'esx-2', models: [] } })], [pool('esx-2', 1)]);
    expect(only({ facts: moved, reservations: { r: held('a') } }).reservation).toEqual(
      held('a', { pool: 'esx-2' }),
    );
  });

  describe('reservations on nodes that move to another host', () => {
    const onHosts = (hosts: Readonly<Record<string, string>>, more: Partial<Facts> = {}) =>
      facts(
        Object.entries(hosts).map(([name, host]) => gpuNode(name, { gpus: { pool: host, models: [] } })),
        [pool('x', 1), pool('y', 1), pool('z', 1)],
        more,
      );
    const requests = [request('a', { age: 9 }), request('b')];
    const reservations = { a: held('n1', { pool: 'x' }), b: held('n2', { pool: 'y' }) };
    const pools = (given: Given) =>
      Object.fromEntries(
        [...run(given).reservations].map(([uid, { node: on, pool: id }]) => [uid, [on, id]]),
      );

    test('if its node moves to a full host, a reservation of a paused object keeps its old GPU pool and is degraded', () => {
      const paused = requests.map((each) => ({ ...each, mayReserve: false }));
      const given = { requests: paused, facts: onHosts({ n1: 'y', n2: 'y' }), reservations };
      expect(pools(given)).toEqual({ a: ['n1', 'x'], b: ['n2', 'y'] });
      expect(run(given).verdicts.get('a')?.degradedBy).toBe('Reserved');
      expect(run(given).verdicts.get('b')?.degradedBy).toBeUndefined();
    });

    test('if its node moves to a full host, a reservation is made again on another node', () => {
      const known = onHosts({ n1: 'y', n2: 'y', n3: 'z' });
      expect(pools({ requests, facts: known, reservations })).toEqual({ a: ['n3', 'z'], b: ['n2', 'y'] });
    });

    test('if a reservation keeps its old GPU pool, the reservation of another node does not move into this pool', () => {
      const three = [...requests, request('c')].map((each) => ({ ...each, mayReserve: false }));
      const known = onHosts({ n1: 'y', n2: 'z', n3: 'z' });
      const given = {
        requests: three,
        facts: known,
        reservations: { ...reservations, c: held('n3', { pool: 'z' }) },
      };
      expect(pools(given)).toEqual({ a: ['n1', 'x'], b: ['n2', 'y'], c: ['n3', 'z'] });
    });

    test('a reservation moves with its node to a host that another node and its reservation have left', () => {
      expect(pools({ requests, facts: onHosts({ n1: 'y', n2: 'z' }), reservations })).toEqual({
        a: ['n1', 'y'],
        b: ['n2', 'z'],
      });
    });
  });

  test('a reservation is made again for a changed spec', () => {
    const requests = [request('r', { generation: 2, hours: 5 })];
    expect(only({ requests, facts: two, reservations: { r: held('b') } }).reservation).toMatchObject({
      node: 'a',
      generation: 2,
      until: NOW + 5 * HOUR_MS,
    });
  });

  test('a reservation for a newer spec than the cached one stays', () => {
    const newer = held('b', { generation: 2, gpus: 2 });
    expect(only({ facts: two, reservations: { r: newer } }).reservation).toEqual(newer);
    const ended = { ...newer, ended: { at: NOW, reason: 'JobEnded' } } as const;
    expect(only({ facts: two, reservations: { r: ended } }).reservation).toEqual(ended);
  });

  test('a reservation of a running job follows a changed spec only if the node has enough GPUs', () => {
    const requests = [request('r', { generation: 2, hours: 120 })];
    const given = { requests, facts: { ...two, ...activeOn('b') }, reservations: { r: held('b') } };
    expect(only(given, NOW + HOUR_MS).reservation).toMatchObject({
      node: 'b',
      generation: 2,
      from: NOW,
      until: NOW + 120 * HOUR_MS,
    });
    const tooMany = [request('r', { generation: 2, gpus: 2 })];
    expect(only({ ...given, requests: tooMany })).toMatchObject({
      reservation: { node: 'b', generation: 1, gpus: 1 },
      degradedBy: 'TooFewGpus',
    });
  });

  test('a reservation of a running job ends if a changed spec asks for fewer hours than have passed', () => {
    const requests = [request('r', { generation: 2, hours: 5 }), request('next')];
    const one = facts([gpuNode('a')], [pool('a', 1)], activeOn('a'));
    const given = { requests, facts: one, reservations: { r: held('a', { inUse: true }) } };
    expect(only(given, NOW + 6 * HOUR_MS).reservation).toMatchObject({
      generation: 2,
      until: NOW + 5 * HOUR_MS,
      ended: { reason: 'TimePassed' },
    });
    expect(nodes(given, NOW + 6 * HOUR_MS).next).toBe('a');
  });

  test('a reservation of a running job does not grow if another reservation holds the GPUs', () => {
    const one = facts([gpuNode('n')], [pool('n', 2)], activeOn('n'));
    const changed = request('r', { age: 9, generation: 2, gpus: 2 });
    const requests = [changed, request('paused', { mayReserve: false })];
    const given = { requests, facts: one, reservations: { r: held('n'), paused: held('n') } };
    const { reservations, verdicts } = run(given);
    expect(reservations.get('r')).toMatchObject({ generation: 1, gpus: 1 });
    expect(verdicts.get('r')?.degradedBy).toBe('Reserved');
    expect(reservations.get('paused')).toEqual(held('n'));
  });

  test('a reservation of a paused object does not change with the spec', () => {
    const requests = [request('r', { generation: 2, gpus: 0, hours: 5, mayReserve: false })];
    expect(only({ requests, facts: two, reservations: { r: held('a') } }).reservation).toEqual(held('a'));
  });

  test('a reservation of a paused object moves to a new GPU pool only if all reserved GPUs are free there', () => {
    const paused = request('a', { generation: 2, gpus: 1, mayReserve: false });
    const moved = (total: number) =>
      run({
        requests: [paused],
        facts: facts([gpuNode('n', { gpus: { pool: 'host', models: [] } })], [pool('host', total)]),
        reservations: { a: held('n', { gpus: 2 }) },
      }).reservations.get('a');
    expect(moved(1)).toMatchObject({ pool: 'n', gpus: 2 });
    expect(moved(2)).toMatchObject({ pool: 'host', gpus: 2 });
  });

  test('a request with a changed spec is served before an older request, unless the change asks for more GPUs than are reserved for it', () => {
    const one = facts([gpuNode('n')], [pool('n', 2)]);
    const requests = [request('r', { generation: 2 }), request('old', { age: 9, gpus: 2 })];
    const given = { requests, facts: one, reservations: { r: held('n', { gpus: 2 }) } };
    expect(nodes(given)).toEqual({ r: 'n', old: undefined });
    const more = [request('r', { generation: 2, gpus: 2 }), request('old', { age: 9, gpus: 2 })];
    expect(nodes({ ...given, requests: more, reservations: { r: held('n') } })).toEqual({
      r: undefined,
      old: 'n',
    });
  });

  test('if a pool loses GPUs, running jobs keep their reservations first, then the oldest requests', () => {
    const fewer = facts([gpuNode('n')], [pool('n', 1)]);
    const requests = [request('young'), request('old', { age: 9 })];
    const reservations = { young: held('n'), old: held('n') };
    expect(nodes({ requests, facts: fewer, reservations })).toEqual({ old: 'n', young: undefined });
    const running = { ...reservations, young: held('n', { inUse: true }) };
    const jobs = new Map([['young', job('Active', ['n'])]]);
    expect(nodes({ requests, facts: { ...fewer, jobs }, reservations: running })).toEqual({
      young: 'n',
      old: undefined,
    });
  });

  test('a reservation ends when its time has passed, and is made again when the spec changes', () => {
    const end = NOW + 100 * HOUR_MS;
    const { reservation } = only({ facts: two, reservations: { r: held('a') } }, end);
    expect(reservation).toEqual(held('a', { ended: { at: end, reason: 'TimePassed' } }));
    const reservations = { r: held('a', reservation) };
    expect(only({ facts: two, reservations }, end + 1).reservation).toEqual(reservation);
    const requests = [request('r', { generation: 2 })];
    expect(only({ requests, facts: two, reservations }, end + 1).reservation).toMatchObject({
      node: 'a',
      isRepeated: true,
      from: end + 1,
    });
  });

  test.each([
    ['its job has ended', 'Ended', { inUse: true }, true],
    ['its job is gone', undefined, { inUse: true }, true],
    ['its job ended before the operator observed the reservation in use', 'Ended', {}, true],
    ['no job has begun', undefined, {}, false],
    ['only an earlier job has ended', 'Ended', { isRepeated: true }, false],
    ['its job is active', 'Active', { inUse: true }, false],
    ['it was in use and its Job has no pods now', 'Waiting', { inUse: true }, false],
    ['its Job has not started pods yet', 'Waiting', {}, false],
  ] as const)('whether a reservation ends if %s (job %s, %j): %s', (_, state, fields, isEnded) => {
    const jobs: Facts['jobs'] = new Map(state === undefined ? [] : [['r', job(state)]]);
    const { reservation } = only({ facts: { ...two, jobs }, reservations: { r: held('a', fields) } });
    expect(reservation?.ended?.reason).toBe(isEnded ? 'JobEnded' : undefined);
  });

  test('a reservation ends after IDLE_MS without pods if a controller may start the job again', () => {
    const running = { ...two, jobs: new Map([['r', job('Active', ['a'], { mayRestart: true })]]) };
    const at = (known: Facts, before: Reservation, ms: number) => {
      const result = run({ requests: [request('r')], facts: known, reservations: { r: before } }, NOW + ms);
      return { stored: result.reservations.get('r') ?? before, nextAt: result.nextAt };
    };
    const used = at(running, held('a'), 0).stored;
    const idle = at(two, used, 1_000);
    expect(idle).toMatchObject({ stored: { idleSince: NOW + 1_000 }, nextAt: NOW + 1_000 + IDLE_MS });
    expect(idle.stored.ended).toBeUndefined();
    expect(at(running, idle.stored, 2_000).stored, 'started again').toEqual(used);
    const ended = at(two, idle.stored, 1_000 + IDLE_MS).stored;
    expect(ended.ended).toEqual({ at: NOW + 1_000 + IDLE_MS, reason: 'JobEnded' });
  });

  test('a reservation of a JobSet ends immediately when the JobSet has ended', () => {
    const before = held('a', { inUse: true, mayRestart: true });
    const ended = { ...two, jobs: new Map([['r', job('Ended', [], { isOver: true })]]) };
    expect(only({ facts: ended, reservations: { r: before } }).reservation?.ended?.reason).toBe('JobEnded');
    // A deleted JobSet starts no pods again, so `mayRestart` is dropped, and the reservation ends with the last pod.
    const ending = { ...two, jobs: new Map([['r', job('Active', ['a'], { isOver: true })]]) };
    const { reservation } = only({ facts: ending, reservations: { r: before } });
    expect(reservation).toEqual(held('a', { inUse: true }));
  });

  test('a reservation of an active job leaves an unsuitable node if no pod is bound to the node', () => {
    const reservations = { r: held('a', { inUse: true }) };
    const gated = withA({ blocker }, undefined, {
      jobs: new Map([['r', job('Active', [], { pinnedTo: ['a'] })]]),
    });
    expect(only({ facts: gated, reservations })).toMatchObject({
      reservation: { node: 'b', inUse: true },
      degradedBy: 'PodsOnOtherNode',
    });
  });

  test('a missing reservation is made again on the node on which pods of its job run', () => {
    const known = facts(
      [gpuNode('a', { cpuUsage: 1 }), gpuNode('b')],
      [pool('a', 1), pool('b', 1, { r: 1 })],
      activeOn('b'),
    );
    expect(only({ facts: known }).reservation).toMatchObject({ node: 'b', inUse: true });
  });

  test('a reservation is degraded while pods of its job are bound to another node', () => {
    const given = { facts: { ...two, ...activeOn('b') }, reservations: { r: held('a') } };
    expect(only(given)).toMatchObject({ reservation: { node: 'a' }, degradedBy: 'PodsOnOtherNode' });
    expect(only({ ...given, facts: { ...two, ...activeOn('a') } }).degradedBy).toBeUndefined();
  });

  test('a reservation that has ended holds no GPUs', () => {
    const one = facts([gpuNode('n')], [pool('n', 1)]);
    const requests = [request('r', { age: 9 }), request('next')];
    expect(nodes({ requests, facts: one, reservations: { r: held('n', { until: NOW }) } })).toEqual({
      r: 'n',
      next: 'n',
    });
  });

  test('a reservation without an end is kept until maintenance begins', () => {
    const planned = withA({ maintenance: maintenance(5, 7) });
    const requests = [request('r', { hours: 0 })];
    const reservations = { r: held('a', { until: undefined }) };
    expect(only({ requests, facts: planned, reservations }).reservation?.node).toBe('a');
    expect(only({ requests, facts: planned, reservations }, NOW + 5 * HOUR_MS).reservation?.node).toBe('b');
  });
});

describe('space in the ledger, the ConfigMap that stores all reservations', () => {
  const ofNamespace = (namespace: string, count: number, age = 0) =>
    Array.from({ length: count }, (_, index) => {
      const uid = `${namespace}-${String(index).padStart(4, '0')}`;
      return request(uid, { key: `${namespace}/${'x'.repeat(240)}${uid}`, gpus: 0, age });
    });
  const cpu = facts([node('cpu')]);

  test('the ledger space of a namespace is limited, so that other namespaces get reservations', () => {
    const { verdicts, reservations } = run({
      requests: [...ofNamespace('greedy', 3_000, 9), ...ofNamespace('ml', 1)],
      facts: cpu,
    });
    expect(verdicts.get('greedy-0000')?.reservation?.node).toBe('cpu');
    expect(verdicts.get('greedy-2999')).toMatchObject({
      reservation: undefined,
      refusedBy: 'TooManyReservations',
    });
    expect(verdicts.get('ml-0000')?.reservation?.node).toBe('cpu');
    expect(reservations.size).toBeLessThan(1_000);
  });

  test('the stored reservations never exceed 1 MiB, even after all of them have ended', () => {
    const requests = ['a', 'b', 'c', 'd', 'e'].flatMap((namespace) => ofNamespace(namespace, 900));
    const first = run({ requests, facts: cpu });
    const ended = allocate(
      { requests, facts: cpu, reservations: first.reservations, horizonMs: HORIZON_MS },
      NOW + 200 * HOUR_MS,
    );
    const bytes = [...ended.reservations].map(
      ([uid, each]) => uid.length + JSON.stringify(formatReservation(each)).length + 4,
    );
    expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThan(2 ** 20);
    expect(ended.reservations.size).toBeGreaterThan(1_000);
  });
});

test('equal requests that no node meets are evaluated once', () => {
  let reads = 0;
  const watched: Candidate = Object.defineProperty(gpuNode('n'), 'labels', {
    get: () => {
      reads += 1;
      return {};
    },
  });
  const known = facts([watched], [pool('n', 1)]);
  const requests = Array.from({ length: 50 }, (_, index) =>
    request(`r${index}`, { nodeSelector: { zone: 'a' }, policy: index % 2 === 0 ? 'Pack' : 'LeastCpu' }),
  );
  expect(Object.values(nodes({ requests, facts: known })).every((each) => each === undefined)).toBe(true);
  expect(reads).toBe(1);
});

describe('nextAt, the time of the next change that no event announces', () => {
  test.each([
    ['none if nothing is planned', [], {}, undefined],
    ['the end of a reservation', [], { r: held('n') }, 100],
    [
      'the end of a reservation before the start of maintenance',
      maintenance(5, 7),
      { r: held('n', { until: NOW + 3 * HOUR_MS }) },
      3,
    ],
    ['the end of maintenance', maintenance(-1, 7), {}, 7],
    [
      'none after the reservation has ended',
      [],
      { r: held('n', { ended: { at: NOW, reason: 'JobEnded' } }) },
      undefined,
    ],
  ] as const)('nextAt is %s', (_, planned, reservations, hours) => {
    const known = facts([gpuNode('n', { maintenance: planned })], [pool('n', 1)]);
    const { nextAt } = run({ facts: known, reservations });
    expect(nextAt).toBe(hours === undefined ? undefined : NOW + hours * HOUR_MS);
  });
});

describe('reservations that are in the status of the GPUInfo but not in the ledger (the ConfigMap of all reservations)', () => {
  const two = facts(
    [gpuNode('m', { cpuUsage: 1 }), gpuNode('n', { cpuUsage: 2 })],
    [pool('m', 1), pool('n', 1)],
  );
  const until = NOW + 40 * HOUR_MS; // 60 of 100 hours have passed
  const a = request('a', { age: 100 * 3_600 });
  const shown = (fields: Partial<Reported> = {}) =>
    new Map([['a', { node: 'n', generation: 1, until, ...fields }]]);

  test('a reservation that is only in the status is restored before an older request gets a node', () => {
    const older = request('older', { age: 200 * 3_600, nodeSelector: { zone: 'n' } });
    const known = {
      ...two,
      candidates: two.candidates.map((each) => ({ ...each, labels: { zone: each.name } })),
    };
    const { reservations } = run({ facts: known, requests: [a, older], reported: shown() });
    expect(Object.fromEntries(reservations)).toEqual({
      a: held('n', { from: NOW - 60 * HOUR_MS, until }),
    });
  });

  test('a reservation that is only in the status is restored for a paused request', () => {
    expect(nodes({ facts: two, requests: [{ ...a, mayReserve: false }], reported: shown() })).toEqual({
      a: 'n',
    });
  });

  test('a reservation that is only in the status is not restored on an unsuitable node', () => {
    const cordoned = gpuNode('n', { blocker: { reason: 'Unschedulable', message: 'cordoned' } });
    const known = facts([gpuNode('m'), cordoned], [pool('m', 1), pool('n', 1)]);
    expect(nodes({ facts: known, requests: [a], reported: shown() })).toEqual({ a: 'm' });
  });

  test('a reservation that is only in the status takes no GPU from a reservation in the ledger', () => {
    const b = request('b');
    const given = { facts: two, requests: [a, b], reported: shown(), reservations: { b: held('n') } };
    expect(nodes(given)).toEqual({ a: 'm', b: 'n' });
  });

  test('the reservation in the status is ignored if the ledger has one for the request', () => {
    const given = { facts: two, requests: [a], reported: shown(), reservations: { a: held('m') } };
    expect(nodes(given)).toEqual({ a: 'm' });
    const ended = held('m', { ended: { at: NOW, reason: 'JobEnded' } });
    expect(run({ ...given, reservations: { a: ended } }).reservations.get('a')).toEqual(ended);
  });

  test.each<readonly [string, Partial<Reported>]>([
    ['for another generation of the spec', { generation: 2 }],
    ['on a node that does not exist', { node: 'x' }],
    ['without an end', { until: undefined }],
    ['with an end that cannot be parsed', { until: Number.NaN }],
    ['with an end that has passed', { until: NOW }],
    ['that would have begun before the object was created', { until: NOW - HOUR_MS }],
    ['that is longer than desAccTime', { until: NOW + 101 * HOUR_MS }],
  ])('a reservation %s is not restored from the status', (_, fields) => {
    const { reservations } = run({ facts: two, requests: [a], reported: shown(fields) });
    expect(reservations.get('a')).toEqual(held('m'));
  });

  test('a restored reservation is not ended by a job that has already ended', () => {
    const known = { ...two, jobs: new Map([['a', job('Ended')]]) };
    expect(run({ facts: known, requests: [a], reported: shown() }).reservations.get('a')).toEqual(
      held('n', { from: NOW - 60 * HOUR_MS, until, isRepeated: true }),
    );
  });
});
