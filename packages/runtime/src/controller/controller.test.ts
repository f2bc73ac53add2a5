import { collectingLogger, nodeWorld, type World } from '@vmwright/core';
import type { Cluster } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap, Deployment, Pod } from '../../test/kinds.ts';
import { virtualWorld } from '../../test/worlds.ts';
import { kubeconfigAccess } from '../access/kubeconfig.ts';
import { BackendUnavailableError } from '../availability/availability.ts';
import { CacheEvent } from '../cache/cache-event.ts';
import type { Client } from '../client/client.ts';
import { apiError } from '../client/errors.ts';
import { Secret } from '../kind/builtin/secret.ts';
import { Manager } from '../manager/manager.ts';
import { startManager, waitFor } from '../testing/index.ts';
import type { ControllerOptions } from './controller.ts';
import { annotationsChanged, any, generationChanged, labelsChanged, statusChanged } from './predicates.ts';
import { requeueAfter, TerminalError } from './result.ts';
import { Channel, watch } from './sources.ts';

/** Runs a controller of ConfigMaps in one namespace until the test ends. */
async function run(
  cluster: Cluster,
  namespace: string,
  options: Omit<ControllerOptions<ConfigMap>, 'for'>,
  world: World = nodeWorld,
) {
  const { logger, lines } = collectingLogger();
  const access = await kubeconfigAccess({ world, path: cluster.kubeconfig });
  const manager = new Manager({
    world,
    access,
    name: 'controller-test',
    log: logger,
    namespaces: [namespace],
  });
  const controller = manager.control<ConfigMap>({ for: ConfigMap, ...options });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  const client = await connect(cluster.kubeconfig, { fieldManager: 'user' });
  onTestFinished(() => client[Symbol.asyncDispose]());
  return { lines, manager, controller, client, stop, running };
}

/** Records calls and waits for them. */
function calls<T>() {
  const all: T[] = [];
  let next = Promise.withResolvers<void>();
  return {
    all,
    add: (call: T) => {
      all.push(call);
      next.resolve();
      next = Promise.withResolvers();
    },
    until: async (holds: (all: readonly T[]) => boolean) => {
      while (!holds(all)) await next.promise;
    },
  };
}

/** Watches an object until `holds` returns true. `holds` gets undefined while the object does not exist. */
async function until(
  client: Client,
  namespace: string,
  name: string,
  holds: (object: ConfigMap | undefined) => boolean,
) {
  const fieldSelector = `metadata.name=${name}`;
  let object: ConfigMap | undefined;
  for await (const event of client.watch(ConfigMap, { namespace, fieldSelector, sendInitialEvents: true })) {
    if (event.type !== 'BOOKMARK') object = event.type === 'DELETED' ? undefined : event.object;
    if (holds(object)) return;
  }
}

test('an object is reconciled with its newest state when it is created and when it changes', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { client } = await run(cluster, namespace.name, {
    reconcile: async ({ metadata, data }) => {
      if (metadata.name === 'a') seen.add(data?.n ?? '');
    },
  });
  const metadata = { namespace: namespace.name, name: 'a' };
  await client.create(ConfigMap, { metadata, data: { n: '1' } });
  await seen.until((all) => all.includes('1'));
  await client.mergePatch(ConfigMap, metadata, { data: { n: '2' } });
  await seen.until((all) => all.at(-1) === '2');
});

test("a reconcile's own write is visible in the cache immediately and does not enqueue the object", async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { client } = await run(cluster, namespace.name, {
    reconcile: async (object, context) => {
      const { name, resourceVersion } = object.metadata;
      if (name === 'kube-root-ca.crt') return;
      seen.add(`${name} ${object.data?.done ?? ''}`);
      if (name !== 'writes') return;
      await context.client.mergePatch(ConfigMap, object.metadata, {
        metadata: { resourceVersion },
        data: { done: 'yes' },
      });
      expect(context.cache(ConfigMap).get(context.key)?.data?.done).toBe('yes');
    },
  });
  await client.create(ConfigMap, { metadata: { namespace: namespace.name, name: 'writes' } });
  await until(client, namespace.name, 'writes', (object) => object?.data?.done === 'yes');
  // Once the cache has an object that was created later, the watch has delivered the write.
  await client.create(ConfigMap, { metadata: { namespace: namespace.name, name: 'fence' } });
  await seen.until((all) => all.includes('fence '));
  expect(seen.all).toEqual(['writes ', 'fence ']);
});

test('a failing object is retried and logged, and does not delay others; a TerminalError is not retried', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { client, lines } = await run(cluster, namespace.name, {
    reconcile: async ({ metadata }) => {
      seen.add(metadata.name);
      if (metadata.name === 'bad') throw new Error('the cloud is down');
      if (metadata.name === 'hopeless') throw new TerminalError('no such size');
    },
  });
  for (const name of ['bad', 'hopeless', 'good'])
    await client.create(ConfigMap, { metadata: { namespace: namespace.name, name } });
  await seen.until((all) => all.filter((name) => name === 'bad').length >= 4 && all.includes('good'));
  expect(seen.all.filter((name) => name === 'hopeless')).toHaveLength(1);
  const logged = () => lines.filter(({ level }) => level === 'error');
  expect(logged()).toContainEqual(
    expect.objectContaining({
      msg: 'Reconcile failed',
      controller: 'configmap',
      object: `${namespace.name}/bad`,
      error: 'the cloud is down',
      reconcileId: expect.any(String),
    }),
  );
  await expect
    .poll(() => logged().map(({ msg }) => msg))
    .toContain('Reconcile failed, not retried until the object changes');
});

test('a status that another program edits or empties is restored immediately; own status writes do not enqueue the object', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  await using _ = await startManager(cluster, { namespaces: [namespace.name] }, (manager) =>
    manager.control({
      for: Pod,
      predicate: any(generationChanged, statusChanged),
      resyncMs: 0,
      reconcile: async (pod, { setStatus }) => {
        seen.add(`${pod.metadata.name} ${pod.status?.message}`);
        await setStatus(pod, { ...pod.status, message: 'expected' });
      },
    }),
  );
  await using client = await connect(cluster.kubeconfig, { fieldManager: 'user' });
  const create = (name: string) =>
    client.create(Pod, {
      metadata: { namespace: namespace.name, name },
      spec: { schedulerName: 'none', containers: [{ name: 'main', image: 'none' }] },
    });
  const edit = (message: string | null) =>
    client.mergePatch(
      Pod,
      { namespace: namespace.name, name: 'a' },
      { status: { message } },
      { subresource: 'status' },
    );
  // Waits for the status write of the controller. An earlier edit would make that write fail with a conflict.
  const written = () =>
    waitFor(
      client,
      Pod,
      { namespace: namespace.name, name: 'a' },
      (pod) => pod?.status?.message === 'expected',
    );
  await create('a');
  await written();
  await edit('edited');
  await seen.until((all) => all.includes('a edited'));
  await written();
  await edit(null);
  await seen.until((all) => all.length === 3);
  // Once the cache has an object that was created later, the watch has delivered all writes above.
  await create('fence');
  await seen.until((all) => all.includes('fence undefined'));
  expect(seen.all).toEqual(['a undefined', 'a edited', 'a undefined', 'fence undefined']);
  expect((await client.get(Pod, { namespace: namespace.name, name: 'a' })).status?.message).toBe('expected');
});

test('a reconcile that fails because its backend is unavailable is retried, and logged only at debug level', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { client, lines } = await run(cluster, namespace.name, {
    reconcile: async ({ metadata }) => {
      seen.add(metadata.name);
      if (metadata.name === 'waits') throw new BackendUnavailableError('cloud', 'no answer');
    },
  });
  await client.create(ConfigMap, { metadata: { namespace: namespace.name, name: 'waits' } });
  await seen.until((all) => all.filter((name) => name === 'waits').length >= 4);
  const logged = lines.filter(({ object }) => object === `${namespace.name}/waits`);
  expect(new Set(logged.map(({ level, msg, backend }) => `${level} ${backend} ${msg}`))).toEqual(
    new Set(['debug cloud Reconcile failed: backend unavailable']),
  );
});

test('different objects are reconciled concurrently, but no object is reconciled twice at the same time', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const active = new Map<string, number>();
  const max = { perObject: 0, total: 0 };
  const seen = calls<string>();
  const concurrent = Promise.withResolvers<void>();
  const { client } = await run(cluster, namespace.name, {
    concurrency: 4,
    reconcile: async (object, { client: own }) => {
      const { name } = object.metadata;
      active.set(name, (active.get(name) ?? 0) + 1);
      max.perObject = Math.max(max.perObject, active.get(name) ?? 0);
      max.total = Math.max(
        max.total,
        [...active.values()].reduce((sum, n) => sum + n, 0),
      );
      if (max.total > 1) concurrent.resolve();
      await concurrent.promise; // the first reconcile does not end before another one has started
      await own.get(ConfigMap, object.metadata);
      active.set(name, (active.get(name) ?? 1) - 1);
      seen.add(`${name} ${object.data?.n}`);
    },
  });
  const names = ['a', 'b', 'c', 'd', 'e'];
  await Promise.all(
    names.map((name) => client.create(ConfigMap, { metadata: { namespace: namespace.name, name } })),
  );
  for (let n = 1; n <= 10; n++) {
    await Promise.all(
      names.map((name) =>
        client.mergePatch(ConfigMap, { namespace: namespace.name, name }, { data: { n: String(n) } }),
      ),
    );
  }
  await seen.until((all) => names.every((name) => all.includes(`${name} 10`)));
  expect(max.perObject).toBe(1);
  expect(max.total).toBeGreaterThan(1);
});

test('the finalizer is added before the first reconcile and removed when finalize succeeds; other finalizers are kept', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  let outsideGone = false;
  const { client } = await run(cluster, namespace.name, {
    finalizer: {
      name: 'test.vmwright.dev/outside',
      finalize: async ({ metadata }) => {
        if (metadata.name !== 'held') return;
        seen.add('finalize');
        if (!outsideGone) return requeueAfter(20);
      },
    },
    reconcile: async ({ metadata }) => {
      if (metadata.name === 'held') seen.add(`reconcile with ${metadata.finalizers?.join(' and ')}`);
    },
  });
  const metadata = { namespace: namespace.name, name: 'held', finalizers: ['others.example/theirs'] };
  await client.create(ConfigMap, { metadata });
  await seen.until((all) =>
    all.includes('reconcile with others.example/theirs and test.vmwright.dev/outside'),
  );
  expect(seen.all).toHaveLength(1);

  await client.delete(ConfigMap, metadata);
  await seen.until((all) => all.filter((call) => call === 'finalize').length >= 3);
  expect((await client.get(ConfigMap, metadata)).metadata.finalizers).toHaveLength(2);
  outsideGone = true;
  await until(client, namespace.name, 'held', (object) => object?.metadata.finalizers?.length === 1);
  expect((await client.get(ConfigMap, metadata)).metadata.finalizers).toEqual(['others.example/theirs']);
  await client.mergePatch(ConfigMap, metadata, { metadata: { finalizers: null } });
  await until(client, namespace.name, 'held', (object) => object === undefined);
});

test('an object is enqueued by changes of objects that it owns or that a watch maps to it, and by event sources', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const channel = new Channel();
  const { client } = await run(cluster, namespace.name, {
    predicate: generationChanged,
    owns: [Deployment],
    watches: [
      watch(Deployment, ({ metadata }) =>
        metadata.labels?.for ? [`${namespace.name}/${metadata.labels.for}`] : [],
      ),
    ],
    sources: [channel.source],
    reconcile: async ({ metadata }) => seen.add(metadata.name),
  });
  const create = (name: string) =>
    client.create(ConfigMap, { metadata: { namespace: namespace.name, name } });
  const [owner] = [await create('owner'), await create('watcher'), await create('channel')];
  const reconciled = async (name: string, times: number) =>
    seen.until((all) => all.filter((each) => each === name).length >= times);
  await Promise.all(['owner', 'watcher', 'channel'].map((name) => reconciled(name, 1)));

  const labels = { app: 'x', for: 'watcher' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'none' }] } };
  await client.create(Deployment, {
    metadata: {
      namespace: namespace.name,
      name: 'owned',
      labels,
      ownerReferences: [
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          name: 'owner',
          uid: owner?.metadata.uid ?? '',
          controller: true,
        },
      ],
    },
    spec: { replicas: 0, selector: { matchLabels: { app: 'x' } }, template },
  });
  await reconciled('owner', 2);
  await reconciled('watcher', 2);
  const before = seen.all.filter((name) => name === 'channel').length;
  channel.enqueue(`${namespace.name}/channel`);
  await reconciled('channel', before + 1);
});

test('events recorded right before shutdown are still written', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { world } = virtualWorld(); // the virtual clock stands still, so sending the last events cannot time out
  const { client, stop, running } = await run(
    cluster,
    namespace.name,
    {
      reconcile: async (object, { event }) => {
        if (object.metadata.name !== 'eventful') return;
        event(object, { type: 'Warning', reason: 'NoCapacity', note: 'no host has capacity' });
        seen.add('recorded');
      },
    },
    world,
  );
  await client.create(ConfigMap, { metadata: { namespace: namespace.name, name: 'eventful' } });
  await seen.until((all) => all.length > 0);
  stop.abort();
  await running;
  const { stdout } = await cluster.kubectl(['-n', namespace.name, 'events', '--for=configmap/eventful']);
  expect(stdout).toMatch(/Warning +NoCapacity +ConfigMap\/eventful +no host has capacity/);
});

test('only changes that match the predicate enqueue an object', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { client } = await run(cluster, namespace.name, {
    predicate: any(labelsChanged, annotationsChanged),
    reconcile: async ({ metadata, data }) =>
      seen.add(`${metadata.name} ${data?.n} ${metadata.labels?.a ?? '-'} ${metadata.annotations?.b ?? '-'}`),
  });
  const ref = { namespace: namespace.name, name: 'filtered' };
  await client.create(ConfigMap, { metadata: ref, data: { n: '1' } });
  await seen.until((all) => all.includes('filtered 1 - -'));
  await client.mergePatch(ConfigMap, ref, { data: { n: '2' } });
  // Watch events arrive in order: when this object is reconciled, the change before it has been filtered out.
  await client.create(ConfigMap, { metadata: { ...ref, name: 'marker' }, data: { n: '0' } });
  await seen.until((all) => all.includes('marker 0 - -'));
  await client.mergePatch(ConfigMap, ref, { metadata: { labels: { a: 'x' } } });
  await seen.until((all) => all.includes('filtered 2 x -'));
  await client.mergePatch(ConfigMap, ref, { metadata: { annotations: { b: 'y' } } });
  await seen.until((all) => all.includes('filtered 2 x y'));
  expect(seen.all.filter((call) => call.startsWith('filtered'))).toEqual([
    'filtered 1 - -',
    'filtered 2 x -',
    'filtered 2 x y',
  ]);
});

test('a reconcile that exceeds timeoutMs is aborted and retried', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { client, lines } = await run(cluster, namespace.name, {
    timeoutMs: 50,
    reconcile: async ({ metadata }, { signal }) => {
      if (metadata.name !== 'slow') return;
      seen.add('called');
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
  });
  await client.create(ConfigMap, { metadata: { namespace: namespace.name, name: 'slow' } });
  await seen.until((all) => all.length >= 2);
  expect(lines.map(({ msg }) => msg)).toContain('Reconcile timed out');
});

test('stopping the manager waits for the running reconcile and starts no other reconcile', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { client, stop, running } = await run(cluster, namespace.name, {
    reconcile: async ({ metadata }, { client: own }) => {
      if (!metadata.name.startsWith('busy')) return;
      seen.add(`${metadata.name} begins`);
      stop.abort();
      await own.get(ConfigMap, metadata);
      seen.add(`${metadata.name} ends`);
    },
  });
  await Promise.all(
    ['busy-1', 'busy-2'].map((name) =>
      client.create(ConfigMap, { metadata: { namespace: namespace.name, name } }),
    ),
  );
  await running;
  expect(seen.all).toHaveLength(2);
  expect(seen.all[1]).toBe(seen.all[0]?.replace('begins', 'ends'));
});

test('if a child is deleted during the reconcile that created it, the owner is enqueued again', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const child = { namespace: namespace.name, name: 'child' };
  const { client } = await run(cluster, namespace.name, {
    predicate: ({ key }) => key.endsWith('/owner'),
    watches: [
      watch(ConfigMap, ({ metadata }) => (metadata.name === 'child' ? [`${namespace.name}/owner`] : [])),
    ],
    reconcile: async ({ metadata }, { client: own, cache, signal }) => {
      if (metadata.name !== 'owner') return;
      seen.add('begins');
      if (seen.all.length > 1) return;
      await own.create(ConfigMap, { metadata: child });
      const gone = new Promise<void>((resolve) => {
        cache(ConfigMap).subscribe(
          ({ type, key }) => type === 'removed' && key.endsWith('/child') && resolve(),
        );
      });
      await client.delete(ConfigMap, child, { signal });
      await gone;
    },
  });
  await client.create(ConfigMap, { metadata: { ...child, name: 'owner' } });
  await seen.until((all) => all.length === 2);
});

test('an object that is deleted by its own reconcile is finalized', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { client } = await run(cluster, namespace.name, {
    reconcile: async ({ metadata }, { client: own }) => {
      const { uid, resourceVersion } = metadata;
      await own.delete(ConfigMap, metadata, { uid, resourceVersion });
    },
    finalizer: { name: 'test.vmwright.dev/own', finalize: async ({ metadata }) => seen.add(metadata.name) },
    predicate: ({ key }) => key.endsWith('/brief'),
  });
  await client.create(ConfigMap, { metadata: { namespace: namespace.name, name: 'brief' } });
  await seen.until((all) => all.includes('brief'));
  await until(client, namespace.name, 'brief', (object) => object === undefined);
});

test('errors in predicate, watch or reconcile do not affect other objects', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { client, lines } = await run(cluster, namespace.name, {
    predicate: ({ key }) => {
      if (key.endsWith('/bad-predicate')) throw new Error('a bug in a predicate');
      return true;
    },
    watches: [
      watch(ConfigMap, ({ metadata }) => {
        if (metadata.name === 'bad-map') throw new Error('a bug in a mapping');
        return [];
      }),
    ],
    reconcile: async ({ metadata }) => {
      seen.add(metadata.name);
      if (metadata.name === 'bad-throw') throw Object.create(null);
      if (metadata.name === 'bad-time') return requeueAfter(Number.NaN);
      return undefined;
    },
  });
  for (const name of ['bad-throw', 'bad-time', 'bad-predicate', 'bad-map', 'good'])
    await client.create(ConfigMap, { metadata: { namespace: namespace.name, name } });
  await seen.until((all) =>
    ['bad-throw', 'bad-time', 'bad-predicate', 'bad-map', 'good'].every((name) => all.includes(name)),
  );
  expect(JSON.stringify(lines)).toContain('a bug in a predicate');
  expect(JSON.stringify(lines)).toContain(
    'requeueAfter needs a non-negative number of milliseconds, not NaN',
  );
});

test('an event source that fails is restarted', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  let started = 0;
  await using before = await connect(cluster.kubeconfig);
  await before.create(ConfigMap, { metadata: { namespace: namespace.name, name: 'a' } });
  await run(cluster, namespace.name, {
    predicate: () => false,
    sources: [
      async (enqueue, signal) => {
        started += 1;
        if (started === 1) throw new Error('the backend is down');
        seen.add('source');
        enqueue(`${namespace.name}/a`);
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      },
    ],
    reconcile: async ({ metadata }) => seen.add(metadata.name),
  });
  // The object is also reconciled once at the start, so a reconcile after the source's event is required.
  await seen.until((all) => all.includes('source') && all.lastIndexOf('a') > all.indexOf('source'));
});

test('declared caches are synced before the first reconcile, and undeclared caches cannot be read', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using user = await connect(cluster.kubeconfig);
  for (let i = 0; i < 20; i++)
    await user.create(Secret, { metadata: { namespace: namespace.name, name: `secret-${i}` } });
  const seen = calls<{ readonly secrets: number; readonly rejection: unknown }>();
  await run(cluster, namespace.name, {
    reads: [Secret],
    reconcile: async (_, context) => {
      let rejection: unknown;
      try {
        context.cache(Deployment);
      } catch (error) {
        rejection = error;
      }
      seen.add({ secrets: [...context.cache(Secret).list()].length, rejection });
    },
  });
  await seen.until((all) => all.length > 0);
  expect(seen.all[0]?.secrets).toBe(20);
  expect(String(seen.all[0]?.rejection)).toBe(
    'Error: the cache of deployments.apps is read but not declared; add the kind to `reads`',
  );
});

test('repeated conflicts on an object are logged as a warning', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  const { lines } = await run(cluster, namespace.name, {
    reconcile: async (object, { client }) => {
      seen.add(object.metadata.name);
      await client.mergePatch(ConfigMap, object.metadata, { metadata: { resourceVersion: '1' } });
    },
  });
  await seen.until((all) => all.length >= 8);
  const logged = lines.find(
    ({ msg }) => msg === 'Object changed during reconcile after repeated failures, retrying',
  );
  expect(logged).toMatchObject({ level: 'warn', object: `${namespace.name}/kube-root-ca.crt`, failures: 6 });
});

test('if Retry-After is longer than the back-off, the retry waits for Retry-After', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  const seen = calls<number>();
  await run(cluster, namespace.name, {
    reconcile: async () => {
      seen.add(nodeWorld.monotonic());
      if (seen.all.length === 1) throw apiError('too many', { status: 429, retryAfterMs: 400 });
    },
  });
  await seen.until((all) => all.length === 2);
  const [first = 0, second = 0] = seen.all;
  expect(second - first).toBeGreaterThanOrEqual(400); // the back-off after a first failure is 5 ms
});

test('a standby replica does not collect keys in its queue', async ({ cluster }) => {
  const access = await kubeconfigAccess({ world: nodeWorld, path: cluster.kubeconfig });
  const manager = new Manager({ world: nodeWorld, access, name: 'standby' });
  const { queue } = manager.control<ConfigMap>({ for: ConfigMap, reconcile: async () => undefined });
  const cache = manager.caches.get(ConfigMap);
  let events = 0;
  cache.subscribe(() => {
    events += 1;
  });
  cache.onWrite({ metadata: { namespace: 'default', name: 'x', uid: 'u', resourceVersion: '7' } });
  expect([events, queue.depth]).toEqual([1, 0]);
});

test('onStartedLeading is called at the start of each leadership term, before sources and reconciles start', async ({
  cluster,
}) => {
  const access = await kubeconfigAccess({ world: nodeWorld, path: cluster.kubeconfig });
  const manager = new Manager({ world: nodeWorld, access, name: 'terms' });
  const seen = calls<string>();
  const controller = manager.control<ConfigMap>({
    for: ConfigMap,
    sources: [
      async () => {
        seen.add('source');
      },
    ],
    onStartedLeading: () => seen.add('started'),
    reconcile: async () => seen.add('reconcile'),
  });
  manager.caches
    .get(ConfigMap)
    .onWrite({ metadata: { namespace: 'default', name: 'x', uid: 'u', resourceVersion: '7' } });
  for (const term of [1, 2]) {
    const stop = new AbortController();
    const running = controller.run(stop.signal);
    await seen.until((all) => all.filter((call) => call === 'reconcile').length === term);
    stop.abort();
    await running;
  }
  expect(seen.all).toEqual(['started', 'source', 'reconcile', 'started', 'source', 'reconcile']);
});

test('an unchanged object is reconciled again after resyncMs', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  await run(cluster, namespace.name, {
    resyncMs: 50,
    reconcile: async ({ metadata }) => seen.add(metadata.resourceVersion ?? ''),
  });
  await seen.until((all) => all.length >= 4);
  expect(new Set(seen.all).size).toBe(1);
});

test('after a conflict, the next change enqueues the object without applying the predicate', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  const seen = calls<string>();
  let failures = 0;
  const { client } = await run(cluster, namespace.name, {
    predicate: generationChanged, // ConfigMaps have no generation, so changes of their data do not match
    reconcile: async ({ metadata, data }) => {
      if (metadata.name === 'kube-root-ca.crt') return;
      seen.add(`${metadata.name} ${data?.n}`);
      // The retry succeeds with the cached object, which may be stale.
      if (failures++ === 0) throw apiError('the object has been modified', { status: 409 });
    },
  });
  const metadata = { namespace: namespace.name, name: 'stale' };
  await client.create(ConfigMap, { metadata, data: { n: '1' } });
  await seen.until((all) => all.length === 2);
  await client.mergePatch(ConfigMap, metadata, { data: { n: '2' } });
  await seen.until((all) => all.length === 3);
  await client.mergePatch(ConfigMap, metadata, { data: { n: '3' } });
  await client.create(ConfigMap, { metadata: { ...metadata, name: 'fence' }, data: { n: '1' } });
  await seen.until((all) => all.includes('fence 1'));
  expect(seen.all).toEqual(['stale 1', 'stale 1', 'stale 2', 'fence 1']);
});

test('predicates match an object that was deleted and created again while the watch was interrupted', () => {
  const state = (uid: string, resourceVersion: number) =>
    JSON.stringify({ metadata: { name: 'a', uid, generation: 1, resourceVersion: String(resourceVersion) } });
  const change = (before: string, after: string) =>
    new CacheEvent({ type: 'changed', key: 'a', before, after, version: 2 }, false);
  for (const predicate of [generationChanged, labelsChanged, annotationsChanged]) {
    expect(predicate(change(state('u-1', 1), state('u-1', 2)))).toBe(false);
    expect(predicate(change(state('u-1', 1), state('u-2', 2)))).toBe(true);
  }
});
