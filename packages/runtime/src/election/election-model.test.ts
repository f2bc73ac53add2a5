import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LeaseServer, Machine, SeededRandom, Timeline } from '../../test/election-model.ts';
import type { LeaderElectionOptions } from './options.ts';

/*
 * Invariants:
 * - Two machines never lead at the same instant of true time, whatever happens to the machines, their clocks and the
 *   network.
 * - After all faults have ended, exactly one machine leads.
 */

const CANDIDATES = 3;
const machine = fc.nat(CANDIDATES - 1);
/** Durations of the order of the election's retry interval, renew deadline and lease duration. */
const span = fc.oneof(fc.integer({ min: 1, max: 4_000 }), fc.integer({ min: 4_000, max: 40_000 }));
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: span }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pause' as const), machine, ms: span }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sleep' as const), machine, ms: span }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('jump' as const),
      machine,
      ms: fc.constantFrom(-3_600_000, -20_000, 20_000, 3_600_000),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('network' as const),
      machine,
      is: fc.constantFrom('good' as const, 'slow' as const, 'lossy' as const, 'down' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const), machine }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const), machine }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('start' as const), machine }) },
);

const clocks = fc.record({
  speed: fc.double({ min: 0.9, max: 1.1, noNaN: true }),
  wallOffsetMs: fc.integer({ min: -86_400_000, max: 86_400_000 }),
  /** Whether the machine can sleep. The wall clock of such a machine does not jump (see the election's assumptions). */
  sleeps: fc.boolean(),
});

const scenario = fc.record({
  seed: fc.integer(),
  machines: fc.array(clocks, { minLength: CANDIDATES, maxLength: CANDIDATES }),
  steps: fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }),
});

interface PropertyOptions {
  readonly plant?: (options: LeaderElectionOptions) => LeaderElectionOptions;
  readonly leads?: (machine: Machine) => boolean;
}

const counts = { terms: 0, lostTerms: 0, lostRequests: 0, lostAnswers: 0, successions: 0 };

function electionProperty({ plant, leads = ({ leads }) => leads }: PropertyOptions = {}) {
  return fc.asyncProperty(scenario, async ({ seed, machines: drawn, steps }) => {
    const timeline = new Timeline();
    const server = new LeaseServer();
    const random = new SeededRandom(seed);
    const machines = drawn.map(
      ({ speed, wallOffsetMs }, index) =>
        new Machine({
          name: `m${index}`,
          timeline,
          server,
          random,
          speed,
          wallOffsetMs,
          ...(plant && { plant }),
        }),
    );
    let last: Machine | undefined;
    const check = () => {
      const leading = machines.filter(leads);
      if (leading.length > 1) throw new Error(`${leading.length} lead at ${timeline.now}`);
      if (leading[0] !== undefined && last !== undefined && leading[0] !== last) counts.successions += 1;
      last = leading[0] ?? last;
    };
    for (const each of machines) each.start();

    for (const each of steps) {
      if (each.do === 'pass') {
        await timeline.run(timeline.now + each.ms, check);
        continue;
      }
      const target = machines[each.machine];
      if (target === undefined) continue;
      switch (each.do) {
        case 'pause':
          target.pause(each.ms);
          break;
        case 'sleep':
          if (drawn[each.machine]?.sleeps) target.sleep(each.ms);
          break;
        case 'jump':
          if (!drawn[each.machine]?.sleeps) target.jumpWallClock(each.ms);
          break;
        case 'network':
          target.network = each.is;
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
      }
      check();
    }

    // No more faults: late requests arrive, paused machines resume, the last lease expires.
    for (const each of machines) each.network = 'good';
    await timeline.run(timeline.now + 100_000, check);
    for (const each of machines) if (!each.runs) each.start();
    await timeline.run(timeline.now + 60_000, check);
    expect(machines.filter(leads)).toHaveLength(1);
    for (const each of machines)
      for (const key of ['terms', 'lostTerms', 'lostRequests', 'lostAnswers'] as const)
        counts[key] += each.counts[key];
  });
}

test('at most one machine leads at any instant, and exactly one leads after the faults have ended', async () => {
  // Shrinking a failure takes long; after the limit the smallest failure so far is reported.
  await fc.assert(electionProperty(), { numRuns: 500, interruptAfterTimeLimit: 60_000 });
  // The scenarios must contain enough faults.
  expect(counts.terms).toBeGreaterThan(700);
  expect(counts.successions).toBeGreaterThan(150);
  expect(counts.lostTerms).toBeGreaterThan(100);
  expect(counts.lostRequests).toBeGreaterThan(1_000);
  expect(counts.lostAnswers).toBeGreaterThan(100);
});

describe('mutants', () => {
  async function found(mutant: PropertyOptions): Promise<string> {
    const { failed, errorInstance } = await fc.check(electionProperty(mutant), {
      numRuns: 2_000,
      endOnFailure: true,
    });
    expect(failed).toBe(true);
    return String(errorInstance);
  }

  test('the model detects a candidate that does not wait for the lease to expire', async () => {
    const hasty = (options: LeaderElectionOptions): LeaderElectionOptions => ({
      ...options,
      client: {
        ...options.client,
        get: async (...args) => {
          const lease = await options.client.get(...args);
          return { ...lease, spec: { ...lease.spec, leaseDurationSeconds: 8 } };
        },
      },
    });
    expect(await found({ plant: hasty })).toContain('2 lead');
  });

  test("the model detects a candidate that trusts the renewTime of the holder's clock", async () => {
    const trusting = (options: LeaderElectionOptions): LeaderElectionOptions => ({
      ...options,
      client: {
        ...options.client,
        get: async (...args) => {
          const lease = await options.client.get(...args);
          const { renewTime = '', leaseDurationSeconds = 0 } = lease.spec ?? {};
          const left = Date.parse(renewTime) / 1_000 + leaseDurationSeconds - options.world.now() / 1_000;
          return { ...lease, spec: { ...lease.spec, leaseDurationSeconds: Math.max(left, 0) } };
        },
      },
    });
    expect(await found({ plant: trusting })).toContain('2 lead');
  });

  test('the model detects a candidate that writes without a resourceVersion precondition', async () => {
    const blind = (options: LeaderElectionOptions): LeaderElectionOptions => ({
      ...options,
      client: {
        ...options.client,
        mergePatch: (kind, ref, patch, call) =>
          options.client.mergePatch(kind, ref, { ...patch, metadata: {} }, call),
      },
    });
    expect(await found({ plant: blind })).toContain('2 lead');
  });

  test('the model detects a leader that relies on its abort signal alone and does not check the clock', async () => {
    expect(await found({ leads: ({ leadsBySignal }) => leadsBySignal })).toContain('2 lead');
  });

  test('the model detects a leader that measures its term from the response instead of the request', async () => {
    const late = (options: LeaderElectionOptions): LeaderElectionOptions => {
      const { client, world } = options;
      // The leader's clock skips the time between a request and its response.
      let lostMs = 0;
      const timed = async <T>(call: Promise<T>): Promise<T> => {
        const started = world.monotonic();
        const response = await call;
        lostMs += world.monotonic() - started;
        return response;
      };
      return {
        ...options,
        world: {
          ...world,
          now: () => 0,
          monotonic: () => world.monotonic() - lostMs,
        },
        client: {
          ...client,
          mergePatch: (...args) => timed(client.mergePatch(...args)),
        },
      };
    };
    expect(await found({ plant: late })).toContain('2 lead');
  });

  test('the model detects a leader that ignores the time during which its machine slept', async () => {
    const sleepy = ({ world, ...options }: LeaderElectionOptions): LeaderElectionOptions => ({
      ...options,
      world: { ...world, now: () => 0 },
    });
    expect(await found({ plant: sleepy })).toContain('2 lead');
  });
});
