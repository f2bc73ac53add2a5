import fc from 'fast-check';
import { expect, test } from 'vitest';
import { allocate } from './allocate.ts';
import type { Allocation, AllocationInput, Reservations } from './allocation.ts';
import type { Candidate, Facts, GpuPool } from './candidate.ts';
import { HOUR_MS, isFreeOfMaintenance } from './maintenance.ts';
import { byAge, type Request } from './request.ts';
import { formatReservation, parseReservation, type Reservation } from './reservation.ts';
import { facts, gpuNode, job, NOW, node, request } from './testing.ts';

const HORIZON_MS = 500 * HOUR_MS;
const UIDS = ['r1', 'r2', 'r3', 'r4', 'r5', 'r6'] as const;
const POOLS = ['n1', 'n2', 'host'] as const;
const MODELS = ['A100', 'H100'] as const;

const blocker = fc.option(
  fc
    .constantFrom('NotReady', 'Tainted', 'PoweredOff', 'FactsUnknown')
    .map((reason) => ({ reason, message: reason }) as const),
  { nil: undefined, freq: 3 },
);
const maintenance = fc
  .array(
    fc.record({
      start: fc.integer({ min: -20, max: 300 }),
      length: fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
    }),
    { maxLength: 2 },
  )
  .map((windows) =>
    windows
      .toSorted((a, b) => a.start - b.start)
      .map(({ start, length }) => ({
        startsAt: NOW + start * HOUR_MS,
        endsAt: length === undefined ? undefined : NOW + (start + length) * HOUR_MS,
        source: 'test',
      })),
  );

const candidate = (name: string) =>
  fc
    .record({
      blocker,
      maintenance,
      pool: fc.option(fc.constantFrom(...POOLS), { nil: undefined, freq: 4 }),
      model: fc.constantFrom(...MODELS),
      zone: fc.constantFrom('a', 'b'),
      cpuUsage: fc.nat(5),
      memoryUsage: fc.nat(5),
    })
    .map(({ pool, model, zone, ...fields }): Candidate => {
      const labels = { zone };
      if (pool === undefined) return node(name, { ...fields, labels });
      return gpuNode(name, { ...fields, labels, gpus: { pool, models: [model] } });
    });

const gpuPool = (id: string) =>
  fc
    .record({
      total: fc.nat(4),
      uses: fc.array(
        fc.record({ holder: fc.option(fc.constantFrom(...UIDS), { nil: undefined }), gpus: fc.nat(2) }),
        { maxLength: 2 },
      ),
    })
    .map(({ total, uses }): GpuPool => ({ id, total, uses }));

const anyJob = fc
  .record({
    state: fc.constantFrom('Active', 'Active', 'Ended', 'Waiting'),
    boundTo: fc.subarray(['n1', 'n2', 'n3', 'n4'], { maxLength: 1 }),
    mayRestart: fc.constantFrom(false, false, true),
  })
  .map(({ state, boundTo, mayRestart }) => job(state, state === 'Active' ? boundTo : [], { mayRestart }));

const anyFacts = fc
  .tuple(
    fc.tuple(candidate('n1'), candidate('n2'), candidate('n3'), candidate('n4')),
    fc.nat(4),
    fc.tuple(...POOLS.map(gpuPool)),
    fc.dictionary(fc.constantFrom(...UIDS), anyJob, { maxKeys: 3 }),
  )
  .map(
    ([candidates, count, pools, jobs]): Facts =>
      facts(candidates.slice(0, count), pools, { jobs: new Map(Object.entries(jobs)) }),
  );

const anyRequest = (uid: string) =>
  fc
    .record({
      age: fc.nat(3),
      generation: fc.constantFrom(1, 1, 2),
      hours: fc.constantFrom(0, 10, 100, 600),
      gpus: fc.constantFrom(0, 1, 1, 2),
      model: fc.constantFrom(undefined, undefined, 'a*', 'H100'),
      nodeSelector: fc.constantFrom({}, {}, { zone: 'a' }),
      policy: fc.constantFrom('LeastCpu', 'LeastMemory', 'Pack', 'Spread'),
      mayReserve: fc.constantFrom(true, true, true, false),
    })
    .map(({ model, ...fields }): Request => request(uid, { ...fields, ...(fields.gpus > 0 && { model }) }));

const anyRequests = fc
  .tuple(...UIDS.map(anyRequest))
  .chain((requests) => fc.subarray(requests, { minLength: 1 }));

/**
 * Inputs of one to four successive allocations. Each has its own requests and its own state of the cluster (`facts`),
 * and runs `hours` after the previous allocation.
 */
const history = fc.array(fc.record({ facts: anyFacts, requests: anyRequests, hours: fc.nat(60) }), {
  minLength: 1,
  maxLength: 4,
});

/**
 * Returns the request of the next allocation. The spec changes only together with the generation, and the creation time
 * never changes.
 */
function later(before: Request, { generation, mayReserve, ...changed }: Request): Request {
  const { createdAt } = before;
  if (generation === 1) return { ...before, mayReserve };
  return { ...changed, mayReserve, createdAt, generation: before.generation + 1 };
}

/**
 * Allocates once per step. Between two steps, the reservations are formatted and parsed, as if they were stored in the
 * ConfigMap and read again.
 */
function* replay(
  steps: readonly { readonly facts: Facts; readonly requests: readonly Request[]; readonly hours: number }[],
) {
  let reservations: Reservations = new Map();
  let now = NOW;
  const latest = new Map<string, Request>();
  for (const step of steps) {
    now += step.hours * HOUR_MS;
    const requests = step.requests.map((each) => {
      const before = latest.get(each.uid);
      const current = before === undefined ? each : later(before, each);
      latest.set(each.uid, current);
      return current;
    });
    const input: AllocationInput = { ...step, requests, reservations, horizonMs: HORIZON_MS };
    const result = allocate(input, now);
    yield { input, now, result };
    const stored = [...result.reservations].map(
      ([uid, each]) => [uid, parseReservation(formatReservation(each))] as const,
    );
    reservations = new Map(
      stored.flatMap(([uid, each]) => (each === undefined ? [] : [[uid, each] as const])),
    );
    expect(reservations).toEqual(result.reservations);
  }
}

/** Whether a node meets a request, however many GPUs are free. Does not use `Suitability`, which is under test. */
function meets(
  request: Request,
  { labels, blocker: blocked, gpus, maintenance: planned }: Candidate,
  now: number,
): boolean {
  const { nodeSelector, model, hours } = request;
  return (
    blocked === undefined &&
    Object.entries(nodeSelector).every(([key, value]) => labels[key] === value) &&
    (gpus !== undefined) === request.gpus > 0 &&
    (model === undefined ||
      (gpus?.models ?? []).some((each) => new RegExp(`^${model.replace('*', '.*')}$`, 'i').test(each))) &&
    isFreeOfMaintenance(planned, now, now + hours * HOUR_MS) &&
    (hours * HOUR_MS <= HORIZON_MS || planned.some(({ endsAt = Number.POSITIVE_INFINITY }) => endsAt > now))
  );
}

/** GPUs of a pool that a request could get: the total minus the GPUs that other requests or other pods hold. */
function freeIn(
  poolId: string,
  uid: string,
  { facts: { pools } }: AllocationInput,
  reservations: Reservations,
): number {
  const { total = 0, uses = [] } = pools.get(poolId) ?? {};
  const used = (holder: string | undefined) =>
    uses.filter((use) => use.holder === holder).reduce((sum, { gpus }) => sum + gpus, 0);
  const holders = new Set<string | undefined>(uses.map(({ holder }) => holder));
  for (const [holder, each] of reservations)
    if (each.ended === undefined && each.pool === poolId) holders.add(holder);
  let free = total;
  for (const holder of holders) {
    if (holder === uid) continue;
    const reservation = holder === undefined ? undefined : reservations.get(holder);
    const isLive =
      reservation !== undefined && reservation.ended === undefined && reservation.pool === poolId;
    free -= Math.max(isLive ? reservation.gpus : 0, used(holder));
  }
  return free;
}

const isNew = (uid: string, { reservations }: AllocationInput, result: Allocation) => {
  const [before, after] = [reservations.get(uid), result.reservations.get(uid)];
  return (
    after !== undefined && after.ended === undefined && (before === undefined || before.from !== after.from)
  );
};

/** ALLOCATE_RUNS sets the number of runs of each property. */
const RUNS = { numRuns: Number(process.env.ALLOCATE_RUNS ?? 300) };

test('a new reservation is always on a suitable node with enough free GPUs', () => {
  fc.assert(
    fc.property(history, (steps) => {
      for (const { input, now, result } of replay(steps))
        for (const { request: wanted, reservation } of result.verdicts.values()) {
          if (reservation === undefined || !isNew(wanted.uid, input, result)) continue;
          const chosen = input.facts.candidates.find(({ name }) => name === reservation.node);
          expect(chosen !== undefined && meets(wanted, chosen, now)).toBe(true);
          expect(reservation).toMatchObject({ gpus: wanted.gpus, generation: wanted.generation });
          const { pool = '' } = reservation;
          if (wanted.gpus > 0)
            expect(freeIn(pool, wanted.uid, input, result.reservations)).toBeGreaterThanOrEqual(wanted.gpus);
        }
    }),
    RUNS,
  );
});

test('a request stays without a node only if no node is suitable', () => {
  fc.assert(
    fc.property(history, (steps) => {
      for (const { input, now, result } of replay(steps))
        for (const { request: wanted, reservation } of result.verdicts.values()) {
          if (reservation !== undefined || !wanted.mayReserve) continue;
          const suitable = input.facts.candidates.filter(
            (each) =>
              meets(wanted, each, now) &&
              (each.gpus === undefined ||
                freeIn(each.gpus.pool, wanted.uid, input, result.reservations) >= wanted.gpus),
          );
          expect(suitable).toEqual([]);
        }
    }),
    RUNS,
  );
});

test('a reservation that can be moved never exceeds the free GPUs of its pool', () => {
  fc.assert(
    fc.property(history, (steps) => {
      for (const { input, result } of replay(steps))
        for (const [uid, reservation] of result.reservations) {
          const { degradedBy, request: wanted } = result.verdicts.get(uid) ?? {};
          const isMovable = wanted?.mayReserve && !reservation.inUse && degradedBy === undefined;
          const { blocker: blocked } =
            input.facts.candidates.find(({ name }) => name === reservation.node) ?? {};
          if (!isMovable || reservation.ended !== undefined || blocked !== undefined) continue;
          const { pool, gpus } = reservation;
          if (pool !== undefined)
            expect(freeIn(pool, uid, input, result.reservations)).toBeGreaterThanOrEqual(gpus);
        }
    }),
    RUNS,
  );
});

test('a reservation that moves to the new GPU pool of its node does not exceed that pool', () => {
  fc.assert(
    fc.property(history, (steps) => {
      for (const { input, result } of replay(steps))
        for (const [uid, { pool, gpus, ended }] of result.reservations) {
          const before = input.reservations.get(uid);
          if (pool === undefined || ended !== undefined || before?.pool === pool) continue;
          expect(freeIn(pool, uid, input, result.reservations)).toBeGreaterThanOrEqual(gpus);
        }
    }),
    RUNS,
  );
});

test('the allocation does not depend on the order of requests, nodes, pools and reservations', () => {
  const shuffled = <T>(items: Iterable<T>, order: readonly number[]): T[] =>
    [...items]
      .map((item, index) => ({ item, at: order[index] ?? 0 }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ item }) => item);
  fc.assert(
    fc.property(history, fc.array(fc.nat(), { minLength: 6, maxLength: 6 }), (steps, order) => {
      for (const { input, now, result } of replay(steps)) {
        const { requests, reservations, facts: known } = input;
        const other = allocate(
          {
            ...input,
            requests: shuffled(requests, order),
            reservations: new Map(shuffled(reservations, order)),
            facts: {
              ...known,
              candidates: shuffled(known.candidates, order),
              pools: new Map(shuffled(known.pools, order)),
            },
          },
          now,
        );
        expect(other.reservations).toEqual(result.reservations);
        expect(other.verdicts).toEqual(result.verdicts);
        expect(other.nextAt).toBe(result.nextAt);
      }
    }),
    RUNS,
  );
});

test('a second allocation with the same facts and requests changes nothing', () => {
  fc.assert(
    fc.property(history, (steps) => {
      for (const { input, now, result } of replay(steps)) {
        const again = allocate({ ...input, reservations: result.reservations }, now);
        expect(again.reservations).toEqual(result.reservations);
      }
    }),
    RUNS,
  );
});

test('if stored reservations are deleted, they are restored from the status of their GPUInfos, and exceed no GPU pool', () => {
  fc.assert(
    fc.property(history, fc.subarray([...UIDS]), (steps, deleted) => {
      for (const { input, now, result } of replay(steps)) {
        const reported = new Map(
          [...result.verdicts].flatMap(
            ([
              uid,
              {
                request: { generation },
                reservation,
              },
            ]) =>
              reservation === undefined || reservation.ended !== undefined
                ? []
                : [[uid, { ...pickReported(reservation), generation }] as const],
          ),
        );
        const left = new Map(
          [...result.reservations].filter(([uid]) => !deleted.some((each) => each === uid)),
        );
        const again = allocate({ ...input, reservations: left, reported }, now);
        for (const uid of deleted) {
          const { request: wanted, reservation: before, degradedBy } = result.verdicts.get(uid) ?? {};
          const blocked = input.facts.candidates.find(({ name }) => name === before?.node)?.blocker;
          if (before === undefined || before.ended !== undefined || degradedBy !== undefined || blocked)
            continue;
          const { pool, gpus } = before;
          const isRoomy = pool === undefined || freeIn(pool, uid, input, result.reservations) >= gpus;
          if (!isRoomy || wanted?.generation !== before.generation) continue;
          const restored = again.reservations.get(uid);
          expect(restored && { ...pickReported(restored), pool: restored.pool, gpus: restored.gpus }).toEqual(
            { ...pickReported(before), pool, gpus },
          );
          if (pool !== undefined)
            expect(freeIn(pool, uid, input, again.reservations)).toBeGreaterThanOrEqual(gpus);
        }
      }
    }),
    RUNS,
  );
});

test('of two equal requests without a node, the older request gets a GPU first', () => {
  fc.assert(
    fc.property(history, anyRequest('a'), fc.nat(3), (steps, template, age) => {
      const last = steps.at(-1);
      if (last === undefined) return;
      const pair = [template, { ...template, ...request('b', { age }), ...pickSpec(template) }].toSorted(
        byAge,
      );
      const result = allocate(
        { facts: last.facts, requests: pair, reservations: new Map(), horizonMs: HORIZON_MS },
        NOW,
      );
      const [older, younger] = pair.map(({ uid }) => result.reservations.get(uid));
      // The order is not checked if pods of requests use GPUs: a GPU that a pod uses is free only for the request of
      // this pod, which may be the younger request.
      const hasUses = [...last.facts.pools.values()].some(({ uses }) =>
        uses.some(({ holder }) => holder !== undefined),
      );
      if (younger !== undefined && !hasUses) expect(older).toBeDefined();
    }),
    RUNS,
  );
});

function pickReported({ node: name, until }: Reservation) {
  return { node: name, until };
}

function pickSpec({ generation, hours, gpus, model, nodeSelector, policy, mayReserve }: Request) {
  return { generation, hours, gpus, model, nodeSelector, policy, mayReserve };
}
