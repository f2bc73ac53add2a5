import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SeededRandom, Timeline } from '../../test/election-model.ts';
import {
  annotate,
  LeaseTable,
  MANUAL_EDITS,
  NAMESPACES,
  Replica,
  SHARDS,
} from '../../test/sharding-model.ts';
import { assign, shardOf } from './assignment.ts';
import type { ShardingOptions } from './options.ts';
import { shardMapOf, shardMapText } from './shard-map.ts';

/*
 * Invariants:
 * - Two replicas never act in the same namespace at the same time, whatever happens to the replicas, their clocks, the
 *   network and the Leases.
 * - After the faults have ended, every shard has the assigned owner, members write only renewals, and no Lease of a
 *   stopped replica is left.
 */

const REPLICAS = 4;
const replica = fc.nat(REPLICAS - 1);
/** Durations around the retry interval, the renew deadline and the lease duration. */
const span = fc.oneof(fc.integer({ min: 1, max: 4_000 }), fc.integer({ min: 4_000, max: 40_000 }));
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: span }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pause' as const), replica, ms: span }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sleep' as const), replica, ms: span }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('jump' as const),
      replica,
      ms: fc.constantFrom(-3_600_000, -20_000, 20_000, 3_600_000),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('network' as const),
      replica,
      state: fc.constantFrom('good' as const, 'slow' as const, 'lossy' as const, 'down' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const), replica }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const), replica }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('start' as const), replica }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deleteLease' as const), replica }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('failReads' as const), replica, fails: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('editShardMap' as const),
      edit: fc.constantFrom('delete' as const, 'blank' as const, 'corrupt' as const, 'swapOwners' as const),
    }),
  },
);

const clocks = fc.record({
  speed: fc.double({ min: 0.9, max: 1.1, noNaN: true }),
  wallOffsetMs: fc.integer({ min: -86_400_000, max: 86_400_000 }),
  /** Whether the machine can sleep. The wall clock of such a machine does not jump (see the election's assumptions). */
  sleeps: fc.boolean(),
  /** Configured number of shards; some replicas differ from the others. */
  shards: fc.constantFrom(SHARDS, SHARDS, SHARDS, 4),
});

const history = fc.record({
  seed: fc.integer(),
  machines: fc.array(clocks, { minLength: REPLICAS, maxLength: REPLICAS }),
  steps: fc.array(step, { minLength: 1, maxLength: 50, size: 'max' }),
});

/** Bugs that a test adds to the model or to the code under test, to check that the property detects them. */
interface Mutation {
  readonly mutate?: (options: ShardingOptions) => ShardingOptions;
  readonly endsEarly?: boolean;
  readonly acts?: (replica: Replica, at: number) => boolean;
  readonly edits?: Partial<Record<keyof typeof MANUAL_EDITS, (server: LeaseTable) => void>>;
}

const counts = {
  histories: 0,
  memberships: 0,
  lostMemberships: 0,
  gained: 0,
  work: 0,
  aborted: 0,
  lostRequests: 0,
  lostResponses: 0,
  edits: 0,
};

function property({
  mutate,
  endsEarly = false,
  acts = (each, at) => each.acts(at),
  edits = {},
}: Mutation = {}) {
  return fc.asyncProperty(history, async ({ seed, machines, steps }) => {
    const timeline = new Timeline();
    const server = new LeaseTable();
    const random = new SeededRandom(seed);
    const replicas = machines.map(
      ({ speed, wallOffsetMs, shards }, index) =>
        new Replica({
          name: `r${index}`,
          timeline,
          server,
          random,
          speed,
          shards,
          wallOffsetMs,
          endsEarly,
          ...(mutate && { mutate }),
        }),
    );
    const check = () => {
      for (const [at, namespace] of NAMESPACES.entries()) {
        let acting = 0;
        for (const each of replicas) if (acts(each, at)) acting += 1;
        if (acting > 1) throw new Error(`${acting} replicas act in ${namespace} at ${timeline.now}`);
      }
    };
    const editedAt = { shardMap: -Infinity, members: -Infinity };
    for (const each of replicas.slice(0, 3)) each.start();

    for (const each of steps) {
      if (each.do === 'pass') {
        await timeline.run(timeline.now + each.ms, check);
        continue;
      }
      if (each.do === 'editShardMap') {
        // `Sharding` assumes that the shard map is not edited shortly after a member's Lease was deleted.
        if (timeline.now - editedAt.members < 40_000) continue;
        editedAt.shardMap = timeline.now;
        counts.edits += 1;
        (edits[each.edit] ?? MANUAL_EDITS[each.edit])(server);
        continue;
      }
      const target = replicas[each.replica];
      if (target === undefined) continue;
      const { sleeps } = machines[each.replica] ?? { sleeps: false };
      switch (each.do) {
        case 'pause':
          target.host.pause(each.ms);
          break;
        case 'sleep':
          if (sleeps) target.host.sleep(each.ms);
          break;
        case 'jump':
          if (!sleeps) target.host.jumpWallClock(each.ms);
          break;
        case 'network':
          target.host.network = each.state;
          break;
        case 'failReads':
          target.failsReads = each.fails;
          break;
        case 'stop':
          target.stop();
          break;
        case 'kill':
          target.kill();
          break;
        case 'start':
          if (!target.runs) target.start();
          break;
        case 'deleteLease': {
          const lease = target.sharding?.member ?? '';
          if (!server.leases.has(lease) || timeline.now - editedAt.shardMap < 40_000) break;
          editedAt.members = timeline.now;
          counts.edits += 1;
          server.leases.delete(lease);
          break;
        }
      }
      check();
    }

    // The faults end. Wait until delayed requests have arrived, all replicas have resumed and the last Lease has
    // expired.
    for (const each of replicas) {
      each.host.network = 'good';
      each.failsReads = false;
    }
    await timeline.run(timeline.now + 60_000, check);
    for (const each of replicas) if (!each.runs) each.start();
    await timeline.run(timeline.now + 120_000, check);
    const members = replicas.map(({ sharding }) => sharding?.member ?? '');
    const { length } = shardMapOf(server.shardMap);
    const desired = assign(length, members);
    for (const [at, namespace] of NAMESPACES.entries())
      expect(replicas.filter((each) => acts(each, at)).map(({ sharding }) => sharding?.member)).toEqual([
        desired[shardOf(namespace, length)],
      ]);
    expect([...server.leases.keys()].sort()).toEqual([...members, 'x-shards'].sort());
    const before = { other: server.otherWrites, all: server.writes };
    await timeline.run(timeline.now + 20_000, check);
    expect(server.otherWrites).toBe(before.other);
    expect(server.writes).toBeGreaterThan(before.all);

    counts.histories += 1;
    for (const each of replicas) {
      for (const key of ['memberships', 'lostMemberships', 'gained', 'work', 'aborted'] as const)
        counts[key] += each.counts[key];
      for (const key of ['lostRequests', 'lostResponses'] as const) counts[key] += each.host.counts[key];
    }
  });
}

/** SHARDING_HISTORIES sets the number of random fault histories to run; SHARDING_SEED sets their seed. */
const HISTORIES = Number(process.env.SHARDING_HISTORIES ?? 300);
const SEED = process.env.SHARDING_SEED;

test('at most one replica acts in a namespace at a time, and after the faults exactly one', async () => {
  await fc.assert(property(), {
    numRuns: HISTORIES,
    // Shrinking takes long; after the limit the smallest failure so far is reported.
    interruptAfterTimeLimit: Math.max(80_000, HISTORIES * 160),
    ...(SEED !== undefined && { seed: Number(SEED) }),
  });
  // The histories must have covered all of these events.
  const scaled = (per500: number) => (per500 * counts.histories) / 500;
  expect(counts.memberships).toBeGreaterThan(scaled(2_000));
  expect(counts.lostMemberships).toBeGreaterThan(scaled(400));
  expect(counts.gained).toBeGreaterThan(scaled(4_000));
  expect(counts.aborted).toBeGreaterThan(scaled(800));
  expect(counts.lostRequests).toBeGreaterThan(scaled(2_000));
  expect(counts.lostResponses).toBeGreaterThan(scaled(400));
  expect(counts.edits).toBeGreaterThan(scaled(200));
}, 3_600_000);

test('a member joins again after its wall clock jumped forward and back between two renewals of its Lease', async () => {
  const timeline = new Timeline();
  const server = new LeaseTable();
  const member = new Replica({
    name: 'r',
    timeline,
    server,
    random: new SeededRandom(1),
    shards: SHARDS,
    speed: 1,
    wallOffsetMs: 0,
  });
  const pass = (ms: number) => timeline.run(timeline.now + ms, () => undefined);
  member.start();
  await pass(30_000);
  const fence = member.sharding?.fence(`${NAMESPACES[0]}/object`);
  fence?.assertOpen();
  // The last read of the shard map becomes older than the last renewal of the member's own Lease.
  member.failsReads = true;
  await pass(5_000);
  member.host.jumpWallClock(6_000);
  expect(() => fence?.assertOpen()).toThrow('this replica does not own shard');
  member.host.jumpWallClock(-6_000);
  member.failsReads = false;
  await pass(60_000);
  expect(member.counts).toMatchObject({ memberships: 2, lostMemberships: 1 });
  expect(NAMESPACES.map((_, at) => member.acts(at))).toEqual(NAMESPACES.map(() => true));
});

describe('mutants', () => {
  async function failureOf(mutation: Mutation): Promise<string> {
    const { failed, errorInstance } = await fc.check(property(mutation), {
      numRuns: 3_000,
      endOnFailure: true,
    });
    expect(failed).toBe(true);
    return String(errorInstance);
  }

  test("the model detects that a member does not wait for another member's Lease to expire", async () => {
    const hasty = (options: ShardingOptions): ShardingOptions => ({
      ...options,
      client: {
        ...options.client,
        list: async (...args) => {
          const page = await options.client.list(...args);
          const items = page.items.map((lease) =>
            lease.spec?.leaseDurationSeconds === undefined
              ? lease
              : { ...lease, spec: { ...lease.spec, leaseDurationSeconds: 8 } },
          );
          return { ...page, items };
        },
      },
    });
    expect(await failureOf({ mutate: hasty })).toContain('2 replicas act');
  });

  test('the model detects that a member releases a shard before the work in that shard has ended', async () => {
    expect(await failureOf({ endsEarly: true })).toContain('2 replicas act');
  });

  test('the model detects that a member relies only on its abort signal and acts after its deadline', async () => {
    expect(await failureOf({ acts: (each, at) => each.actsBySignal(at) })).toContain('2 replicas act');
  });

  test('the model detects that the shard map is written without a resourceVersion precondition', async () => {
    const unconditional = (options: ShardingOptions): ShardingOptions => ({
      ...options,
      client: {
        ...options.client,
        mergePatch: (kind, ref, patch, call) => {
          if (!('metadata' in patch) || ref.name !== 'x-shards')
            return options.client.mergePatch(kind, ref, patch, call);
          const { uid, resourceVersion, ...metadata } = {
            uid: '',
            resourceVersion: '',
            ...Object(patch.metadata),
          };
          return options.client.mergePatch(kind, ref, { ...patch, metadata }, call);
        },
      },
    });
    expect(await failureOf({ mutate: unconditional })).toContain('2 replicas act');
  });

  test('the model detects that members are read from a stale cache', async () => {
    const stale = (options: ShardingOptions): ShardingOptions => {
      const { client, world } = options;
      let cached: { readonly at: number; readonly page: Awaited<ReturnType<typeof client.list>> } | undefined;
      return {
        ...options,
        client: {
          ...client,
          list: async (...args) => {
            // Returns the same list for 20 s, like a cache with a watch connection that is dead but not yet closed.
            if (cached !== undefined && world.monotonic() - cached.at < 20_000) return cached.page;
            cached = { at: world.monotonic(), page: await client.list(...args) };
            return cached.page;
          },
        },
      };
    };
    expect(await failureOf({ mutate: stale })).toContain('2 replicas act');
  });

  test('the model detects that a shard map edited by hand is accepted', async () => {
    const forge = (server: LeaseTable) => {
      const owners = shardMapOf(server.shardMap);
      if (typeof owners === 'string') return;
      const unowned = owners.map(() => undefined);
      annotate(server, shardMapText(unowned, server.shardMap?.spec?.renewTime));
    };
    const edits = { delete: forge, blank: forge, corrupt: forge, swapOwners: forge };
    expect(await failureOf({ edits })).toContain('2 replicas act');
  });
});
