import { silentLogger } from '@vmwright/core';
import { budget, Random, startControlPlane, startToxiproxy } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { withShortBackoffs } from '../../test/worlds.ts';
import { kubeconfigAccess } from '../access/kubeconfig.ts';
import { NotFoundError } from '../client/errors.ts';
import { keyOf } from '../kind/object.ts';
import { Manager } from '../manager/manager.ts';

const ROUNDS = budget(60, 200);
const SEED = Number(process.env.CHAOS_SEED ?? 20261115);
const NAMESPACE = 'default';
const LABELS = { chaos: 'yes' };
const QUICK = ['nothing', 'reset', 'down', 'half open', 'held'] as const;

/** Back-offs take at most a quarter of a second. Every fault ends within its round, so no round waits for a timeout. */
const world = withShortBackoffs(60);

/**
 * Each round changes objects while the connection of a running controller has a fault. After the fault, the round
 * compares the cache and the reconciled versions with the server. Each round continues with the objects of the previous
 * one.
 */
test(`after any fault the cache equals the server and every object was reconciled (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
  const random = new Random(SEED);
  await using controlPlane = await startControlPlane();
  const { cluster, etcd, apiserver } = controlPlane;
  await using toxiproxy = await startToxiproxy();
  const proxy = await toxiproxy.proxy({ name: 'api', upstream: new URL(cluster.access.server).host });
  await using user = await connect(cluster.kubeconfig, { fieldManager: 'user' });

  const direct = await kubeconfigAccess({ world, path: cluster.kubeconfig });
  const access = { ...direct, server: { ...direct.server, origin: `https://${proxy.address}` } };
  const manager = new Manager({ world, access, name: 'chaos', log: silentLogger });
  const cache = manager.caches.get(ConfigMap, {
    namespaces: [NAMESPACE],
    labelSelector: 'chaos=yes',
  });
  const reconciled = new Map<string, string>();
  const active = new Set<string>();
  manager.control({
    for: ConfigMap,
    concurrency: 8,
    reconcile: async ({ metadata }, { key }) => {
      expect(active.has(key), `${key} is reconciled twice at the same time`).toBe(false);
      active.add(key);
      await Promise.resolve();
      active.delete(key);
      reconciled.set(key, metadata.resourceVersion ?? '');
    },
  });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  await cache.waitForSync();

  const faults = {
    nothing: async (change: () => Promise<void>) => change(),
    reset: async (change: () => Promise<void>) => {
      await using _ = await proxy.reset();
      await change();
    },
    down: async (change: () => Promise<void>) => {
      await proxy.disable();
      await change();
      await proxy.enable();
    },
    'half open': async (change: () => Promise<void>) => {
      await using _ = await proxy.halfOpen();
      await change();
    },
    held: async (change: () => Promise<void>) => {
      await using _ = await proxy.hold();
      await change();
    },
    'history lost': async (change: () => Promise<void>) => {
      await proxy.disable();
      await change();
      await controlPlane.compact();
      await etcd.kill();
      await apiserver.kill();
      await etcd.start();
      // The watch cache of the API server starts empty, so it answers the controller's next watch with 410 (Gone).
      await apiserver.start();
      await proxy.enable();
    },
  };
  const count: Record<string, number> = {};

  for (let round = 1; round <= ROUNDS; round++) {
    const fault = round % 40 === 0 ? 'history lost' : random.pick(QUICK);
    count[fault] = (count[fault] ?? 0) + 1;
    await faults[fault](async () => {
      for (let i = random.below(8); i >= 0; i--) {
        const metadata = { namespace: NAMESPACE, name: `object-${random.below(12)}` };
        const data = { round: String(round), step: String(i) };
        if (random.next() < 0.3) await user.delete(ConfigMap, metadata).catch(ignoreMissing);
        else await user.apply(ConfigMap, { metadata: { ...metadata, labels: LABELS }, data });
      }
    });

    const fence = await user.apply(ConfigMap, {
      metadata: { namespace: NAMESPACE, name: 'fence', labels: LABELS },
      data: { round: String(round) },
    });
    await new Promise<void>((resolve) => {
      const unsubscribe = cache.subscribe((event) => {
        if (event.key !== keyOf(fence.metadata) || event.version < Number(fence.metadata.resourceVersion))
          return;
        queueMicrotask(() => unsubscribe());
        resolve();
      });
    });
    const stored = await user.list(ConfigMap, { namespace: NAMESPACE, labelSelector: 'chaos=yes' });
    const expected = Object.fromEntries(
      stored.items.map(({ metadata }) => [keyOf(metadata), metadata.resourceVersion]),
    );
    const cached = () =>
      Object.fromEntries(
        [...cache.list()].map(({ metadata }) => [keyOf(metadata), metadata.resourceVersion]),
      );
    const message = `round ${round} of seed ${SEED}, fault: ${fault}`;
    // Polled: after a 410, the cache lists the objects again. It may then get the object `fence` before other
    // objects, and removes deleted objects only at the end of the list.
    await expect.poll(cached, { message }).toEqual(expected);
    await expect
      .poll(() => Object.keys(expected).filter((key) => reconciled.get(key) !== expected[key]), { message })
      .toEqual([]);
  }
  for (const fault of Object.keys(faults)) expect(count[fault], `rounds with ${fault}`).toBeGreaterThan(0);
  stop.abort();
  await running;
}, 600_000);

function ignoreMissing(error: unknown): void {
  if (!(error instanceof NotFoundError)) throw error;
}
