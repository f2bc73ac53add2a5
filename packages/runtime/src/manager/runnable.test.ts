import { collectingLogger, nodeWorld } from '@vmwright/core';
import type { Cluster } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { virtualWorld } from '../../test/worlds.ts';
import { kubeconfigAccess } from '../access/kubeconfig.ts';
import { LeadershipLostError } from '../election/errors.ts';
import { Event } from '../kind/builtin/event.ts';
import { Lease } from '../kind/builtin/lease.ts';
import { Secret } from '../kind/builtin/secret.ts';
import { Manager } from './manager.ts';
import type { ManagerOptions } from './options.ts';
import type { RunnableContext } from './runnable.ts';

/** A leader keeps its Lease if its process or the API server pauses for less than 10 s. */
const TIMES = { leaseMs: 15_000, renewMs: 10_000, retryMs: 300 };

/** Starts a manager with one runnable. `terms` has a context for each call of `run`, one per leadership term. */
async function start(
  cluster: Cluster,
  options: Partial<ManagerOptions>,
  run: (context: RunnableContext) => Promise<void> = untilAborted,
) {
  const access = await kubeconfigAccess({ world: nodeWorld, path: cluster.kubeconfig });
  const { logger, lines } = collectingLogger();
  const manager = new Manager({ world: nodeWorld, access, name: 'runnable-test', log: logger, ...options });
  const terms: RunnableContext[] = [];
  let changed = Promise.withResolvers<void>();
  const change = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  let ended = 0;
  manager.add({
    name: 'mirror',
    reads: [ConfigMap],
    run: async (context) => {
      terms.push(context);
      change();
      try {
        await run(context);
      } finally {
        ended += 1;
        change();
      }
    },
  });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running.catch(() => undefined);
  });
  running.catch(change);
  const until = async (holds: () => boolean) => {
    while (!holds()) await changed.promise;
  };
  return { manager, terms, until, stop, running, lines, ended: () => ended };
}

function untilAborted({ signal }: RunnableContext): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

test('a runnable runs only on the leader; when the leader stops, the runnable runs on the next leader', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const options = {
    namespaces: [namespace.name],
    election: { ...TIMES, name: 'runnable', namespace: namespace.name },
  };
  const first = await start(cluster, options);
  await first.until(() => first.terms.length === 1);
  const second = await start(cluster, options);
  await second.manager.caches.synced();
  expect(second.terms).toEqual([]);
  expect(first.terms[0]?.shards).toBeUndefined();
  expect(() => first.terms[0]?.assertLeader()).not.toThrow();
  first.stop.abort(new Error('SIGTERM'));
  await first.running;
  expect([first.ended(), first.terms[0]?.signal.aborted]).toEqual([1, true]);
  expect(() => first.terms[0]?.assertLeader()).toThrow();
  await second.until(() => second.terms.length === 1);
});

test('a runnable ends with the term of its replica, and runs again in the next term', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const lease = { name: 'runnable', namespace: namespace.name };
  const { terms, until, ended } = await start(cluster, {
    namespaces: [namespace.name],
    election: { ...TIMES, ...lease },
  });
  await until(() => terms.length === 1);
  await client.mergePatch(Lease, lease, { spec: { holderIdentity: 'another' } });
  await until(() => ended() === 1);
  expect(terms[0]?.signal.reason).toBeInstanceOf(LeadershipLostError);
  await client.mergePatch(Lease, lease, { spec: { holderIdentity: '' } }); // releases the Lease
  await until(() => terms.length === 2);
  expect(() => terms[1]?.assertLeader()).not.toThrow();
  expect(() => terms[0]?.assertLeader()).toThrow();
});

test('hasFreshCaches is true only if the Lease shows that no other replica has led since the caches were listed', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const options = (identity: string) => ({
    namespaces: [namespace.name],
    election: { ...TIMES, name: 'fresh', namespace: namespace.name, identity, observesFirst: true },
  });
  const isFresh = async (replica: Awaited<ReturnType<typeof start>>) => {
    await replica.until(() => replica.terms.length === 1);
    return replica.terms[0]?.hasFreshCaches;
  };
  const stop = async (replica: Awaited<ReturnType<typeof start>>) => {
    replica.stop.abort();
    await replica.running;
  };
  const first = await start(cluster, options('first'));
  expect(await isFresh(first), 'the lease did not exist').toBe(false);
  const standby = await start(cluster, options('standby'));
  await standby.manager.caches.synced();
  await stop(first);
  expect(await isFresh(standby), 'the first replica led while the caches were listed').toBe(false);
  await stop(standby);
  const next = await start(cluster, options('next'));
  expect(await isFresh(next), 'the lease was released').toBe(true);
  await stop(next);
  const { observesFirst: _, ...election } = options('last').election;
  const last = await start(cluster, { namespaces: [namespace.name], election });
  expect(await isFresh(last), 'the lease was not read first').toBe(false);
});

test('a runnable of a manager without election runs immediately', async ({ cluster, namespace }) => {
  const { terms, until, stop, running, ended } = await start(cluster, { namespaces: [namespace] });
  await until(() => terms.length === 1);
  stop.abort();
  await running;
  expect([terms.length, ended()]).toEqual([1, 1]);
});

test('with sharding, a runnable runs on every replica and knows the shards of its own replica', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const options = (identity: string) => ({
    namespaces: [namespace.name],
    sharding: { ...TIMES, name: 'runnable', namespace: namespace.name, identity, shards: 16 },
  });
  const replicas = [await start(cluster, options('one')), await start(cluster, options('two'))];
  for (const { until, terms } of replicas) await until(() => terms.length === 1);
  const held = () => replicas.map(({ terms }) => [...(terms[0]?.shards?.held ?? [])]);
  await expect
    .poll(() =>
      held()
        .flat()
        .sort((a, b) => a - b),
    )
    .toEqual(Array.from({ length: 16 }, (_, shard) => shard));
  await expect.poll(() => held().every(({ length }) => length > 0)).toBe(true);
});

test('an error of a runnable ends the manager', async ({ cluster, namespace }) => {
  const { running, ended } = await start(cluster, { namespaces: [namespace] }, async () => {
    throw new Error('out of memory');
  });
  await expect(running).rejects.toThrow('mirror failed: out of memory');
  expect(ended()).toBe(1);
});

test('a runnable that returns by itself ends the manager', async ({ cluster, namespace }) => {
  const { running } = await start(cluster, { namespaces: [namespace] }, async () => undefined);
  await expect(running).rejects.toThrow('mirror ended although it was not asked to stop');
});

test('an error of a runnable that was asked to stop is ignored', async ({ cluster, namespace }) => {
  const { running, stop, terms, until } = await start(
    cluster,
    { namespaces: [namespace] },
    async (context) => {
      await untilAborted(context);
      context.signal.throwIfAborted();
    },
  );
  await until(() => terms.length === 1);
  stop.abort(new Error('SIGTERM'));
  await running;
});

test('a runnable can read declared caches, write objects and record events', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const ref = { namespace: namespace.name, name: 'subject' };
  const object = await client.create(ConfigMap, { metadata: ref });
  const { world } = virtualWorld(); // its clock stands still, so the sending of events after the stop cannot time out
  const { terms, until, stop, running } = await start(cluster, { world, namespaces: [namespace.name] });
  await until(() => terms.length === 1);
  const [context] = terms;
  expect(context?.cache(ConfigMap).get(ref)?.metadata.uid).toBe(object.metadata.uid);
  expect(() => context?.cache(Secret)).toThrow('the cache of secrets is read but not declared');
  await context?.client.mergePatch(ConfigMap, ref, { data: { by: 'runnable' } });
  expect(context?.cache(ConfigMap).get(ref)?.data).toEqual({ by: 'runnable' });
  context?.event(ConfigMap, object, { type: 'Normal', reason: 'Mirrored', note: 'all is well' });
  stop.abort();
  await running; // sends the remaining events
  const { items } = await client.list(Event, { namespace: namespace.name });
  expect(items.filter(({ reason }) => reason === 'Mirrored')).toMatchObject([
    { note: 'all is well', reportingController: 'runnable-test/mirror' },
  ]);
});

test('add rejects a runnable if its name is in use or the manager is already running', async ({
  cluster,
  namespace,
}) => {
  const { manager, terms, until } = await start(cluster, { namespaces: [namespace] });
  await until(() => terms.length === 1);
  const run = untilAborted;
  expect(() => manager.add({ name: 'late', run })).toThrow('cannot add late: the manager is already running');
  const access = await kubeconfigAccess({ world: nodeWorld, path: cluster.kubeconfig });
  const other = new Manager({ world: nodeWorld, access, name: 'runnable-test' });
  other.add({ name: 'mirror', run });
  expect(() => other.add({ name: 'mirror', run })).toThrow('named mirror already exists');
});
