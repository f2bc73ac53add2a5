import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SeededRandom, Timeline } from '../../../test/election-model.ts';
import {
  accepts,
  CONFIGURATION,
  CRD,
  configuration,
  crd,
  ModelServer,
  Replica,
  SECRET,
  START,
  TIMES,
} from '../../../test/webhook-model.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { dataOf, NOTHING } from './held.ts';
import { planned } from './plan.ts';

/*
 * Invariant: at every instant, whatever a replica serves by is accepted by every API server, even by one that learns of
 * changes LAG_MS late; whoever dies, whatever is lost on the way, whatever the clocks say. Left out are only moments
 * for which someone else has spoilt what an object says about trust, until it is written again.
 */
const LAG_MS = 80_000;
const REPLICAS = 3;
/** Wrong by less than what is left of a certificate when it is renewed. */
const clockOffset = fc.integer({ min: -200_000, max: 200_000 });
const replica = fc.nat(REPLICAS - 1);

const common = [
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 400_000 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('kill' as const), replica }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('start' as const), replica }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('network' as const),
      replica,
      is: fc.constantFrom('good' as const, 'lossy' as const, 'down' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('clock' as const), replica, ms: clockOffset }) },
] as const;
const spoilTrust = [
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('empty' as const), path: fc.constantFrom(CONFIGURATION, CRD) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('remove' as const), path: fc.constantFrom(CONFIGURATION, CRD) }),
  },
] as const;
const spoilSecret = [
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete secret' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('spoil secret' as const),
      key: fc.constantFrom('tls.crt', 'tls.key', 'ca.crt', 'ca.key'),
    }),
  },
] as const;

const beginnings = {
  seed: fc.integer(),
  /** Of the authority, when the story begins: a new one is due at four fifths. */
  age: fc.option(fc.double({ min: 0.6, max: 0.81, noNaN: true }), { nil: undefined }),
};

type Step =
  (typeof common | typeof spoilTrust | typeof spoilSecret)[number]['arbitrary'] extends fc.Arbitrary<infer T>
    ? T
    : never;

const counts = {
  swaps: 0,
  lost: 0,
  conflicts: 0,
  creates: 0,
  secretWrites: 0,
  bundleWrites: 0,
  rotations: 0,
  checks: 0,
};

interface Story {
  readonly seed: number;
  readonly age: number | undefined;
  readonly steps: readonly Step[];
}

async function told({ seed, age, steps }: Story, times: Partial<typeof TIMES> = {}): Promise<void> {
  const timeline = new Timeline();
  const server = new ModelServer(timeline);
  const random = new SeededRandom(seed);
  const replicas = Array.from({ length: REPLICAS }, () => new Replica({ timeline, server, random, times }));
  const held = age === undefined ? undefined : heldAt(START - age * TIMES.authorityMs);
  const bundle = held && dataOf(held)['ca.crt'];
  server.put(CONFIGURATION, configuration(bundle));
  server.put(CRD, crd(bundle));
  if (held !== undefined) server.put(SECRET, { metadata: { name: 'certificate' }, data: dataOf(held) });
  /** Once what the Secret held is lost, a replica that starts cannot but make its own; it is not ready until that is known. */
  let lost = false;
  const strangers = new Map<Replica, number>();
  const lose = () => {
    lost = true;
    for (const each of replicas) if (!each.keeper?.trusted) strangers.set(each, Number.POSITIVE_INFINITY);
  };
  const start = (each: Replica | undefined) => {
    if (each === undefined || each.keeper !== undefined) return;
    if (lost) strangers.set(each, Number.POSITIVE_INFINITY);
    each.start();
  };
  const check = () => {
    for (const each of replicas) {
      const { served } = each;
      if (each.keeper?.trusted && strangers.get(each) === Number.POSITIVE_INFINITY)
        strangers.set(each, timeline.now + LAG_MS);
      if (served === undefined || timeline.now < (strangers.get(each) ?? 0)) continue;
      for (const path of [CONFIGURATION, CRD])
        for (const caBundle of server.said(path, LAG_MS)) {
          counts.checks += 1;
          if (!accepts(caBundle, served, START + timeline.now))
            throw new Error(`${replicas.indexOf(each)} is not accepted by ${path} at ${timeline.now}`);
        }
    }
  };
  for (const each of replicas) start(each);
  for (const step of steps) {
    switch (step.do) {
      case 'pass':
        await timeline.run(timeline.now + step.ms, check);
        break;
      case 'kill':
        replicas[step.replica]?.kill();
        break;
      case 'start':
        start(replicas[step.replica]);
        break;
      case 'network': {
        // Cut off for longer than a certificate lasts after it is due, a replica cannot have a good one.
        const cut = replicas[step.replica];
        if (cut === undefined) break;
        cut.network = step.is;
        timeline.at(timeline.now + 120_000, () => {
          cut.network = 'good';
        });
        break;
      }
      case 'clock': {
        const wrong = replicas[step.replica];
        if (wrong !== undefined) wrong.clockOffset = step.ms;
        break;
      }
      case 'empty':
        server.put(step.path, step.path === CRD ? crd() : configuration());
        break;
      case 'remove':
        server.put(step.path, undefined);
        timeline.at(timeline.now + 45_000, () =>
          server.put(step.path, step.path === CRD ? crd() : configuration()),
        );
        break;
      case 'delete secret':
        server.put(SECRET, undefined);
        lose();
        break;
      case 'spoil secret': {
        const secret = server.get(SECRET);
        if (secret === undefined) break;
        server.put(SECRET, { ...secret, data: { ...Object(secret.data), [step.key]: 'c3BvaWx0' } });
        lose();
        break;
      }
    }
  }
  // When nothing more happens, all serve by what the Secret holds, and it is trusted; and then nothing is written.
  for (const each of replicas) {
    each.network = 'good';
    start(each);
  }
  await timeline.run(timeline.now + 400_000, check);
  const shared = () => Buffer.from(Object(server.get(SECRET)).data['tls.crt'], 'base64').toString();
  const agree = () => replicas.every(({ served }) => served?.certificate === shared());
  // One may have been renewed just now.
  for (let rounds = 0; rounds < 3 && !agree(); rounds += 1) await timeline.run(timeline.now + 40_000, check);
  for (const each of replicas) {
    expect(each.served?.certificate).toBe(shared());
    expect(each.keeper?.trusted).toBe(true);
    for (const path of [CONFIGURATION, CRD])
      for (const caBundle of server.said(path, 0))
        expect(each.served && accepts(caBundle, each.served, START + timeline.now)).toBe(true);
    counts.swaps += each.counts.swaps;
    counts.lost += each.counts.lost;
    each.kill();
  }
  if (authorities(server) > 1) counts.rotations += 1;
  for (const key of ['conflicts', 'creates', 'secretWrites', 'bundleWrites'] as const)
    counts[key] += server.counts[key];
}

function authorities(server: ModelServer): number {
  const { data } = Object(server.get(SECRET));
  return certificatesIn(Buffer.from(data['ca.crt'], 'base64').toString()).length;
}

function heldAt(time: number) {
  const plan = planned(NOTHING, {
    now: time,
    lifetimes: TIMES,
    commonName: 'model webhooks',
    names: ['model.system.svc'],
    isSettled: () => false,
  });
  return plan?.next;
}

const RUNS = {
  numRuns: Number(process.env.WEBHOOK_STORIES ?? 50),
  seed: Number(process.env.WEBHOOK_SEED ?? 20_261_115),
  endOnFailure: true,
};

function stories(...more: readonly (typeof spoilTrust | typeof spoilSecret)[number][]) {
  const steps = fc.array(fc.oneof(...common, ...more), { minLength: 1, maxLength: 30, size: 'max' });
  return fc.record({ ...beginnings, steps });
}

describe('what is served is accepted at every instant', () => {
  test('through renewals, deaths, losses, wrong clocks, and when others spoil whom to trust', async () => {
    await fc.assert(
      fc.asyncProperty(stories(...spoilTrust), (story) => told(story)),
      RUNS,
    );
  });

  test('by replicas that live when the Secret is deleted or spoilt', async () => {
    await fc.assert(
      fc.asyncProperty(stories(...spoilSecret), (story) => told(story)),
      RUNS,
    );
  });

  test('or this test would tell: a certificate of a new authority that is served at once is found', async () => {
    const hasty = fc.asyncProperty(stories(), (story) => told(story, { settleMs: 0 }));
    await expect(fc.assert(hasty, RUNS)).rejects.toHaveProperty(
      'cause.message',
      expect.stringContaining('is not accepted by'),
    );
  });

  test('and all of it has really happened in these stories', () => {
    for (const [what, count] of Object.entries(counts)) expect(count, what).toBeGreaterThan(20);
  });
});
