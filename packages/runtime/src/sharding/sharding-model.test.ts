import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SeededRandom, Timeline } from '../../test/election-model.ts';
import { annotate, LeaseTable, MEDDLING, NAMESPACES, Replica, SHARDS } from '../../test/sharding-model.ts';
import { assign, shardOf } from './assignment.ts';
import { ledgerOf, ledgerText } from './ledger.ts';
import type { ShardingOptions } from './options.ts';

/*
 * Invariant: at no instant of true time may two replicas act in the same namespace, whatever happens to them, their clocks,
 * the network and the leases. And when nothing more happens: every shard is one's, as the assignment says, nothing but
 * renewals is written, and no lease of the dead is left.
 */

const REPLICAS = 4;
const replica = fc.nat(REPLICAS - 1);
/** Around the times that matter: retries, the time one may act for, the lease. */
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
      is: fc.constantFrom('good' as const, 'slow' as const, 'lossy' as const, 'down' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const), replica }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const), replica }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('start' as const), replica }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('unseat' as const), replica }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('blind' as const), replica, is: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('meddle' as const),
      how: fc.constantFrom(
        'deleteLedger' as const,
        'blankLedger' as const,
        'scribble' as const,
        'swapOwners' as const,
      ),
    }),
  },
);

const clocks = fc.record({
  speed: fc.double({ min: 0.9, max: 1.1, noNaN: true }),
  wallOffsetMs: fc.integer({ min: -86_400_000, max: 86_400_000 }),
  /** The wall clock of a machine that sleeps is not set meanwhile (see the election's assumptions). */
  sleeps: fc.boolean(),
  /** Not all replicas are of the same version. */
  shards: fc.constantFrom(SHARDS, SHARDS, SHARDS, 4),
});

const story = fc.record({
  seed: fc.integer(),
  machines: fc.array(clocks, { minLength: REPLICAS, maxLength: REPLICAS }),
  steps: fc.array(step, { minLength: 1, maxLength: 50, size: 'max' }),
});

interface Told {
  readonly plant?: (options: ShardingOptions) => ShardingOptions;
  readonly endsEarly?: boolean;
  readonly acts?: (replica: Replica, at: number) => boolean;
  readonly meddling?: Partial<Record<keyof typeof MEDDLING, (server: LeaseTable) => void>>;
}

const counts = {
  histories: 0,
  lives: 0,
  lostLives: 0,
  gained: 0,
  work: 0,
  askedToEnd: 0,
  lostRequests: 0,
  lostAnswers: 0,
  meddled: 0,
};

function told({ plant, endsEarly = false, acts = (each, at) => each.acts(at), meddling = {} }: Told = {}) {
  return fc.asyncProperty(story, async ({ seed, machines, steps }) => {
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
          ...(plant && { plant }),
        }),
    );
    const check = () => {
      for (const [at, namespace] of NAMESPACES.entries()) {
        let acting = 0;
        for (const each of replicas) if (acts(each, at)) acting += 1;
        if (acting > 1) throw new Error(`${acting} act in ${namespace} at ${timeline.now}`);
      }
    };
    const meddledAt = { ledger: -Infinity, members: -Infinity };
    for (const each of replicas.slice(0, 3)) each.start();

    for (const each of steps) {
      if (each.do === 'pass') {
        await timeline.run(timeline.now + each.ms, check);
        continue;
      }
      if (each.do === 'meddle') {
        // Not both at a time: see the assumptions.
        if (timeline.now - meddledAt.members < 40_000) continue;
        meddledAt.ledger = timeline.now;
        counts.meddled += 1;
        (meddling[each.how] ?? MEDDLING[each.how])(server);
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
          target.host.network = each.is;
          break;
        case 'blind':
          target.blind = each.is;
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
        case 'unseat': {
          const lease = target.sharding?.member ?? '';
          if (!server.leases.has(lease) || timeline.now - meddledAt.ledger < 40_000) break;
          meddledAt.members = timeline.now;
          counts.meddled += 1;
          server.leases.delete(lease);
          break;
        }
      }
      check();
    }

    // From here on all is well: late requests arrive, all wake up, the last lease is waited out.
    for (const each of replicas) {
      each.host.network = 'good';
      each.blind = false;
    }
    await timeline.run(timeline.now + 60_000, check);
    for (const each of replicas) if (!each.runs) each.start();
    await timeline.run(timeline.now + 120_000, check);
    const members = replicas.map(({ sharding }) => sharding?.member ?? '');
    const { length } = ledgerOf(server.ledger);
    const wanted = assign(length, members);
    for (const [at, namespace] of NAMESPACES.entries())
      expect(replicas.filter((each) => acts(each, at)).map(({ sharding }) => sharding?.member)).toEqual([
        wanted[shardOf(namespace, length)],
      ]);
    expect([...server.leases.keys()].sort()).toEqual([...members, 'x-shards'].sort());
    const before = { other: server.otherWrites, all: server.writes };
    await timeline.run(timeline.now + 20_000, check);
    expect(server.otherWrites).toBe(before.other);
    expect(server.writes).toBeGreaterThan(before.all);

    counts.histories += 1;
    for (const each of replicas) {
      for (const key of ['lives', 'lostLives', 'gained', 'work', 'askedToEnd'] as const)
        counts[key] += each.counts[key];
      for (const key of ['lostRequests', 'lostAnswers'] as const) counts[key] += each.host.counts[key];
    }
  });
}

/** More of them, or the same again: SHARDING_HISTORIES, SHARDING_SEED. */
const HISTORIES = Number(process.env.SHARDING_HISTORIES ?? 300);
const SEED = process.env.SHARDING_SEED;

test('never do two act in one namespace at the same instant, and in the end one does in each', async () => {
  await fc.assert(told(), {
    numRuns: HISTORIES,
    // Shrinking a failure takes long; what there is by then is told.
    interruptAfterTimeLimit: Math.max(80_000, HISTORIES * 160),
    ...(SEED !== undefined && { seed: Number(SEED) }),
  });
  // It was about something.
  const often = (atLeast: number) => (atLeast * counts.histories) / 500;
  expect(counts.lives).toBeGreaterThan(often(2_000));
  expect(counts.lostLives).toBeGreaterThan(often(400));
  expect(counts.gained).toBeGreaterThan(often(4_000));
  expect(counts.askedToEnd).toBeGreaterThan(often(800));
  expect(counts.lostRequests).toBeGreaterThan(often(2_000));
  expect(counts.lostAnswers).toBeGreaterThan(often(400));
  expect(counts.meddled).toBeGreaterThan(often(200));
}, 3_600_000);

describe('the model finds it when', () => {
  async function found(planted: Told): Promise<string> {
    const { failed, errorInstance } = await fc.check(told(planted), { numRuns: 3_000, endOnFailure: true });
    expect(failed).toBe(true);
    return String(errorInstance);
  }

  test('a member does not wait for the lease of another to run out', async () => {
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
    expect(await found({ plant: hasty })).toContain('2 act');
  });

  test('a shard is given away before what is under way on it has ended', async () => {
    expect(await found({ endsEarly: true })).toContain('2 act');
  });

  test('a member acts on after its time, trusting its timer alone', async () => {
    expect(await found({ acts: (each, at) => each.actsBySignal(at) })).toContain('2 act');
  });

  test('the ledger is written over a version that its writer has not seen', async () => {
    const blind = (options: ShardingOptions): ShardingOptions => ({
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
    expect(await found({ plant: blind })).toContain('2 act');
  });

  test('members are looked up in a cache that lags behind', async () => {
    const stale = (options: ShardingOptions): ShardingOptions => {
      const { client, world } = options;
      let kept: { readonly at: number; readonly page: Awaited<ReturnType<typeof client.list>> } | undefined;
      return {
        ...options,
        client: {
          ...client,
          list: async (...args) => {
            // As from a watch whose connection is dead, and not yet known to be.
            if (kept !== undefined && world.monotonic() - kept.at < 20_000) return kept.page;
            kept = { at: world.monotonic(), page: await client.list(...args) };
            return kept.page;
          },
        },
      };
    };
    expect(await found({ plant: stale })).toContain('2 act');
  });

  test('a ledger edited by hand is believed', async () => {
    const forged = (server: LeaseTable) => {
      const owners = ledgerOf(server.ledger);
      if (typeof owners === 'string') return;
      const nobody = owners.map(() => undefined);
      annotate(server, ledgerText(nobody, server.ledger?.spec?.renewTime));
    };
    const meddling = { deleteLedger: forged, blankLedger: forged, scribble: forged, swapOwners: forged };
    expect(await found({ meddling })).toContain('2 act');
  });
});
