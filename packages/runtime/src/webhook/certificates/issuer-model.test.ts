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
import { planCertificates } from './plan.ts';
import { dataOf, EMPTY_STATE } from './state.ts';

/*
 * Invariant: every API server accepts the certificate that a replica serves, at any time. This holds even if the watch
 * of an API server lags by LAG_MS, replicas are killed, messages are lost, and clocks are wrong. The only exception is
 * the time between a manual edit of a `caBundle` and its repair.
 */
const LAG_MS = 80_000;
const REPLICAS = 3;
/** Clock error in milliseconds, less than the remaining lifetime of a certificate at its renewal. */
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
      state: fc.constantFrom('good' as const, 'lossy' as const, 'down' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('clock' as const), replica, ms: clockOffset }) },
] as const;
const bundleEdits = [
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('empty' as const), path: fc.constantFrom(CONFIGURATION, CRD) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('remove' as const), path: fc.constantFrom(CONFIGURATION, CRD) }),
  },
] as const;
const secretEdits = [
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deleteSecret' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('damageSecret' as const),
      key: fc.constantFrom('tls.crt', 'tls.key', 'ca.crt', 'ca.key'),
    }),
  },
] as const;

const initial = {
  seed: fc.integer(),
  /** Initial age of the CA as a fraction of its lifetime. A new CA is due at 0.8. */
  age: fc.option(fc.double({ min: 0.6, max: 0.81, noNaN: true }), { nil: undefined }),
};

type Step =
  (typeof common | typeof bundleEdits | typeof secretEdits)[number]['arbitrary'] extends fc.Arbitrary<infer T>
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

interface History {
  readonly seed: number;
  readonly age: number | undefined;
  readonly steps: readonly Step[];
}

async function run({ seed, age, steps }: History, times: Partial<typeof TIMES> = {}): Promise<void> {
  const timeline = new Timeline();
  const server = new ModelServer(timeline);
  const random = new SeededRandom(seed);
  const replicas = Array.from({ length: REPLICAS }, () => new Replica({ timeline, server, random, times }));
  const state = age === undefined ? undefined : stateAt(START - age * TIMES.authorityMs);
  const bundle = state && dataOf(state)['ca.crt'];
  server.put(CONFIGURATION, configuration(bundle));
  server.put(CRD, crd(bundle));
  if (state !== undefined) server.put(SECRET, { metadata: { name: 'certificate' }, data: dataOf(state) });
  /**
   * Whether the Secret was lost. A replica that starts afterwards creates a new CA. `check` makes no assertions about
   * this replica until API servers trust that CA.
   */
  let secretLost = false;
  const uncheckedUntil = new Map<Replica, number>();
  const loseSecret = () => {
    secretLost = true;
    for (const each of replicas)
      if (!each.issuer?.trusted) uncheckedUntil.set(each, Number.POSITIVE_INFINITY);
  };
  const start = (each: Replica | undefined) => {
    if (each === undefined || each.issuer !== undefined) return;
    if (secretLost) uncheckedUntil.set(each, Number.POSITIVE_INFINITY);
    each.start();
  };
  const check = () => {
    for (const each of replicas) {
      const { served } = each;
      if (each.issuer?.trusted && uncheckedUntil.get(each) === Number.POSITIVE_INFINITY)
        uncheckedUntil.set(each, timeline.now + LAG_MS);
      if (served === undefined || timeline.now < (uncheckedUntil.get(each) ?? 0)) continue;
      for (const path of [CONFIGURATION, CRD])
        for (const caBundle of server.bundlesSeen(path, LAG_MS)) {
          counts.checks += 1;
          if (!accepts(caBundle, served, START + timeline.now))
            throw new Error(
              `replica ${replicas.indexOf(each)} is not accepted by ${path} at ${timeline.now}`,
            );
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
        // The outage is limited: a replica without a network for longer than the renewal window cannot have a valid
        // certificate.
        const affected = replicas[step.replica];
        if (affected === undefined) break;
        affected.network = step.state;
        timeline.at(timeline.now + 120_000, () => {
          affected.network = 'good';
        });
        break;
      }
      case 'clock': {
        const affected = replicas[step.replica];
        if (affected !== undefined) affected.clockOffset = step.ms;
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
      case 'deleteSecret':
        server.put(SECRET, undefined);
        loseSecret();
        break;
      case 'damageSecret': {
        const secret = server.get(SECRET);
        if (secret === undefined) break;
        server.put(SECRET, { ...secret, data: { ...Object(secret.data), [step.key]: 'c3BvaWx0' } });
        loseSecret();
        break;
      }
    }
  }
  // After the faults end, all replicas serve the certificate of the Secret, and it is trusted.
  for (const each of replicas) {
    each.network = 'good';
    start(each);
  }
  await timeline.run(timeline.now + 400_000, check);
  const shared = () => Buffer.from(Object(server.get(SECRET)).data['tls.crt'], 'base64').toString();
  const agree = () => replicas.every(({ served }) => served?.certificate === shared());
  // The certificate may have been renewed just now, so wait until all replicas have read it from the Secret.
  for (let attempt = 0; attempt < 3 && !agree(); attempt += 1)
    await timeline.run(timeline.now + 40_000, check);
  for (const each of replicas) {
    expect(each.served?.certificate).toBe(shared());
    expect(each.issuer?.trusted).toBe(true);
    for (const path of [CONFIGURATION, CRD])
      for (const caBundle of server.bundlesSeen(path, 0))
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

function stateAt(time: number) {
  const plan = planCertificates(EMPTY_STATE, {
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

function histories(...more: readonly (typeof bundleEdits | typeof secretEdits)[number][]) {
  const steps = fc.array(fc.oneof(...common, ...more), { minLength: 1, maxLength: 30, size: 'max' });
  return fc.record({ ...initial, steps });
}

describe('certificate issuer', () => {
  test('the issuer always serves a certificate that the API servers accept, despite faults and edits of the caBundle', async () => {
    await fc.assert(
      fc.asyncProperty(histories(...bundleEdits), (history) => run(history)),
      RUNS,
    );
  });

  test('the issuer of a running replica serves a certificate that the API servers accept, even if the Secret is deleted or damaged', async () => {
    await fc.assert(
      fc.asyncProperty(histories(...secretEdits), (history) => run(history)),
      RUNS,
    );
  });

  test('the model detects an issuer that serves a certificate of a new CA too early', async () => {
    const hasty = fc.asyncProperty(histories(), (history) => run(history, { settleMs: 0 }));
    await expect(fc.assert(hasty, RUNS)).rejects.toHaveProperty(
      'cause.message',
      expect.stringContaining('is not accepted by'),
    );
  });

  test('the histories contain every kind of event', () => {
    for (const [event, count] of Object.entries(counts)) expect(count, event).toBeGreaterThan(20);
  });
});
