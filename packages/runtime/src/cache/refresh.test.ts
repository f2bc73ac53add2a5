import { nodeWorld } from '@vmwright/core';
import type { Cluster } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import type { Client } from '../client/client.ts';
import { ForbiddenError } from '../client/errors.ts';
import { ObjectCache } from './cache.ts';

/** Holds back events or pages while it is closed. Open at first. */
class Gate {
  #opened = Promise.withResolvers<void>();
  #isOpen = true;

  get passage(): Promise<void> {
    return this.#isOpen ? Promise.resolve() : this.#opened.promise;
  }

  close(): void {
    this.#isOpen = false;
    this.#opened = Promise.withResolvers();
  }

  open(): void {
    this.#isOpen = true;
    this.#opened.resolve();
  }
}

/** Starts a cache. The test can hold back watch events and list pages between the server and the cache. */
async function start(client: Client, namespaces: readonly string[]) {
  const watchGate = new Gate();
  let pageGate = new Gate();
  let fetched = Promise.withResolvers<void>();
  const cache = new ObjectCache({
    world: nodeWorld,
    client: {
      async *watch(kind, options) {
        for await (const event of client.watch(kind, options)) {
          await watchGate.passage;
          yield event;
        }
      },
      async *pages(kind, options) {
        for await (const page of client.pages(kind, options)) {
          const { passage } = pageGate;
          fetched.resolve();
          await passage;
          yield page;
        }
      },
    },
    kind: ConfigMap,
    namespaces,
  });
  const stop = new AbortController();
  const running = cache.run(stop.signal);
  onTestFinished(async () => {
    watchGate.open();
    stop.abort();
    await running;
  });
  await cache.waitForSync();
  const events: string[] = [];
  const waiting = new Set<() => void>();
  cache.subscribe(({ type, key, initial }) => {
    if (!initial) events.push(`${type} ${key.slice(key.indexOf('/') + 1)}`);
    for (const resume of waiting) resume();
  });
  const until = async (holds: () => boolean) => {
    while (!holds())
      await new Promise<void>((resolve) => {
        waiting.add(resolve);
      });
  };
  const never = new AbortController().signal;
  return {
    cache,
    events,
    until,
    watchGate,
    refresh: (signal = never) => cache.refresh(signal),
    /** Starts a refresh and holds its page back after the server has sent it. */
    fetchPage: async () => {
      const held = new Gate();
      held.close();
      pageGate = held;
      fetched = Promise.withResolvers();
      const refreshing = cache.refresh(never);
      await fetched.promise;
      pageGate = new Gate();
      return {
        process: () => {
          held.open();
          return refreshing;
        },
      };
    },
  };
}

async function setUp(cluster: Cluster) {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const client = stack.use(await connect(cluster.kubeconfig));
  const namespace = stack.use(await cluster.namespace()).name;
  const create = (name: string, data = {}) =>
    client.create(ConfigMap, { metadata: { namespace, name }, data });
  const patch = (name: string, data: object) => client.mergePatch(ConfigMap, { namespace, name }, { data });
  const remove = (name: string) => client.delete(ConfigMap, { namespace, name });
  const env = async () => {
    const started = await start(client, [namespace]);
    const { cache, events, until } = started;
    return {
      ...started,
      get: (name: string) => cache.get({ namespace, name }),
      /** Resolves when the watch has delivered all changes so far. */
      watched: async () => {
        await create('fence');
        await until(() => events.includes('added fence'));
        return events.filter((event) => event !== 'added fence');
      },
    };
  };
  return { client, namespace, create, patch, remove, env };
}

test('refresh makes the cache equal to the server while the watch lags, without duplicate events later', async ({
  cluster,
}) => {
  const { create, patch, remove, env } = await setUp(cluster);
  for (const name of ['changed', 'deleted', 'same']) await create(name, { n: '1' });
  const { refresh, get, watchGate, events, watched } = await env();
  watchGate.close();
  await create('created');
  await patch('changed', { n: '2' });
  await remove('deleted');
  await refresh();
  expect([get('created') !== undefined, get('changed')?.data, get('deleted')]).toEqual([
    true,
    { n: '2' },
    undefined,
  ]);
  expect([...events].sort()).toEqual(['added created', 'changed changed', 'removed deleted']);
  watchGate.open();
  expect([...(await watched())].sort()).toEqual(['added created', 'changed changed', 'removed deleted']);
});

test('refresh does not add an object that was created and deleted while the watch lagged', async ({
  cluster,
}) => {
  const { create, patch, remove, env } = await setUp(cluster);
  const { refresh, get, watchGate, watched } = await env();
  watchGate.close();
  await create('short-lived');
  await patch('short-lived', { n: '2' });
  await remove('short-lived');
  await refresh();
  watchGate.open();
  expect(await watched()).toEqual([]);
  expect(get('short-lived')).toBeUndefined();
});

test('refresh stores a re-created object while the watch lags, and the old object does not come back', async ({
  cluster,
}) => {
  const { create, remove, env } = await setUp(cluster);
  const { metadata: old } = await create('again');
  const { refresh, get, watchGate, watched } = await env();
  watchGate.close();
  await remove('again');
  const { metadata } = await create('again');
  await refresh();
  expect(get('again')?.metadata.uid).toBe(metadata.uid);
  watchGate.open();
  expect(await watched()).toEqual(['changed again']);
  expect(get('again')?.metadata.uid).not.toBe(old.uid);
});

test('an object does not come back if the watch reports its deletion while refresh reads the list', async ({
  cluster,
}) => {
  const { create, remove, env } = await setUp(cluster);
  await create('deleted');
  const { fetchPage, get, until, events } = await env();
  const page = await fetchPage();
  await remove('deleted');
  await until(() => events.includes('removed deleted'));
  await page.process();
  expect(get('deleted')).toBeUndefined();
  expect(events).toEqual(['removed deleted']);
});

test('refresh keeps changes that the watch delivers while the list is read', async ({ cluster }) => {
  const { create, patch, env } = await setUp(cluster);
  await create('changed', { n: '1' });
  const { fetchPage, get, until, events } = await env();
  const page = await fetchPage();
  await patch('changed', { n: '2' });
  await create('created');
  await until(() => events.includes('added created'));
  await page.process();
  expect([get('changed')?.data, get('created') !== undefined]).toEqual([{ n: '2' }, true]);
  expect(events).toEqual(['changed changed', 'added created']);
});

test('an older list that ends after a newer one does not bring a deleted object back', async ({
  cluster,
}) => {
  const { create, remove, env } = await setUp(cluster);
  await create('deleted');
  const { fetchPage, refresh, watchGate, get, watched } = await env();
  watchGate.close();
  const older = await fetchPage();
  await remove('deleted');
  await refresh();
  await older.process();
  expect(get('deleted')).toBeUndefined();
  watchGate.open();
  expect(await watched()).toEqual(['removed deleted']);
});

test('refresh rejects with the abort reason of its signal', async ({ cluster }) => {
  const { env } = await setUp(cluster);
  const { refresh } = await env();
  await expect(refresh(AbortSignal.abort(new Error('the term has ended')))).rejects.toThrow(
    'the term has ended',
  );
});

test('refresh skips a namespace that has become forbidden, and keeps its cached objects', async ({
  cluster,
}) => {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const admin = stack.use(await connect(cluster.kubeconfig));
  const names: string[] = [];
  for (let count = 0; count < 2; count++) names.push(stack.use(await cluster.namespace()).name);
  const [a = '', b = ''] = names;
  const kubectl = (namespace: string, ...args: readonly string[]) =>
    cluster.kubectl(['-n', namespace, ...args]);
  for (const namespace of names) {
    await admin.create(ConfigMap, { metadata: { namespace, name: 'first' } });
    await kubectl(namespace, 'create', 'role', 'reader', '--verb=list,watch', '--resource=configmaps');
    const subject = `--serviceaccount=${a}:default`;
    await kubectl(namespace, 'create', 'rolebinding', 'reader', '--role=reader', subject);
  }
  const client = stack.use(await connect(await cluster.kubeconfigFor({ namespace: a, name: 'default' })));
  const canList = (namespace: string) =>
    client.list(ConfigMap, { namespace }).then(
      () => true,
      (error: unknown) => !(error instanceof ForbiddenError),
    );
  for (const namespace of names) await expect.poll(() => canList(namespace)).toBe(true);
  const { cache, refresh, watchGate } = await start(client, names);
  // The open watch of namespace b continues, so the cache does not notice that b is forbidden.
  await kubectl(b, 'delete', 'rolebinding', 'reader');
  await expect.poll(() => canList(b)).toBe(false);
  watchGate.close();
  await admin.create(ConfigMap, { metadata: { namespace: a, name: 'second' } });
  expect(await refresh()).toEqual([b]);
  expect(cache.get(`${a}/second`)).toBeDefined();
  expect(cache.get(`${b}/first`)).toBeDefined();
});

test('refresh fails if the only watched namespace cannot be listed', async ({ cluster }) => {
  const { client, namespace } = await setUp(cluster);
  let isDown = false;
  const cache = new ObjectCache({
    world: nodeWorld,
    client: {
      watch: (kind, options) => client.watch(kind, options),
      pages: (kind, options) => {
        if (isDown) throw new Error('the API server is unavailable');
        return client.pages(kind, options);
      },
    },
    kind: ConfigMap,
    namespaces: [namespace],
  });
  const stop = new AbortController();
  const running = cache.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  await cache.waitForSync();
  isDown = true;
  await expect(cache.refresh(stop.signal)).rejects.toThrow('the API server is unavailable');
});
