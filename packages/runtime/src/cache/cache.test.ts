import { nodeWorld } from '@vmwright/core';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { apiError } from '../client/errors.ts';
import { ObjectCache } from './cache.ts';
import type { CacheEvent } from './cache-event.ts';
import type { CacheOptions } from './cache-options.ts';

/** Starts a cache of ConfigMaps. */
async function start(kubeconfig: string, options: Partial<CacheOptions<ConfigMap>>) {
  const client = await connect(kubeconfig);
  const cache = new ObjectCache({ world: nodeWorld, client, kind: ConfigMap, ...options });
  const stop = new AbortController();
  const running = cache.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
    await client[Symbol.asyncDispose]();
  });
  await cache.waitForSync();
  return { cache, client };
}

/** Resolves with the first event that matches. */
function next(
  cache: ObjectCache<ConfigMap>,
  matches: (event: CacheEvent<ConfigMap>) => boolean,
): Promise<CacheEvent<ConfigMap>> {
  return new Promise((resolve) => {
    const unsubscribe = cache.subscribe((event) => {
      if (!matches(event)) return;
      queueMicrotask(() => unsubscribe());
      resolve(event);
    });
  });
}

test('a synced cache has every existing object and receives each later change', async ({
  cluster,
  namespace,
}) => {
  await using writer = await connect(cluster.kubeconfig);
  const labels = { set: 'follow' };
  await writer.create(ConfigMap, { metadata: { namespace, name: 'early', labels } });
  const { cache } = await start(cluster.kubeconfig, { namespaces: [namespace], labelSelector: 'set=follow' });
  expect([...cache.keys()]).toEqual([`${namespace}/early`]);

  const added = next(cache, ({ key }) => key.endsWith('/late'));
  await writer.create(ConfigMap, { metadata: { namespace, name: 'late', labels } });
  expect(await added).toMatchObject({ type: 'added', initial: false });
  const changed = next(cache, ({ type }) => type === 'changed');
  await writer.mergePatch(ConfigMap, { namespace, name: 'late' }, { data: { a: '1' } });
  expect((await changed).before?.data).toBeUndefined();
  expect(cache.get({ namespace, name: 'late' })?.data).toEqual({ a: '1' });
  const removed = next(cache, ({ type }) => type === 'removed');
  await writer.delete(ConfigMap, { namespace, name: 'late' });
  expect((await removed).object.data).toEqual({ a: '1' });
  expect([...cache.keys()]).toEqual([`${namespace}/early`]);
});

test('the first list is read in pages when the server does not support WatchList', async ({
  cluster,
  namespace,
}) => {
  await using writer = await connect(cluster.kubeconfig);
  const labels = { set: 'paged' };
  const create = (name: string) => writer.create(ConfigMap, { metadata: { namespace, name, labels } });
  for (const name of ['page-1', 'page-2', 'page-3']) await create(name);
  const rejections: string[] = [];
  // Rejects a watch with sendInitialEvents, as a server without WatchList does. Sends all other requests to the real
  // server.
  const old: CacheOptions<ConfigMap>['client'] = {
    pages: (kind, options) => writer.pages(kind, { ...options, limit: 1 }),
    watch: (kind, options) => {
      if (!options?.sendInitialEvents) return writer.watch(kind, options);
      rejections.push(
        'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
      );
      throw apiError(rejections.at(-1) ?? '', { status: 422, reason: 'Invalid' });
    },
  };
  const { cache } = await start(cluster.kubeconfig, {
    namespaces: [namespace],
    labelSelector: 'set=paged',
    client: old,
  });
  expect([...cache.keys()]).toEqual([1, 2, 3].map((n) => `${namespace}/page-${n}`));
  const late = next(cache, ({ key }) => key.endsWith('/after-pages'));
  await create('after-pages');
  expect(await late).toMatchObject({ type: 'added', initial: false });
  expect(rejections).toHaveLength(1);
});

test('cache reads return copies without managed fields', async ({ cluster, namespace }) => {
  await using writer = await connect(cluster.kubeconfig);
  await writer.create(ConfigMap, {
    metadata: { namespace, name: 'copied', labels: { set: 'copies' } },
    data: { a: '1' },
  });
  const { cache } = await start(cluster.kubeconfig, { namespaces: [namespace], labelSelector: 'set=copies' });
  const copy = cache.get({ namespace, name: 'copied' });
  expect(copy).toBeDefined();
  expect(copy?.metadata).not.toHaveProperty('managedFields');
  Object.assign(copy?.data ?? {}, { a: 'modified' });
  expect(cache.get({ namespace, name: 'copied' })?.data).toEqual({ a: '1' });
});

test('transform reduces the cached objects; metadataOnly caches only their metadata', async ({
  cluster,
  namespace,
}) => {
  await using writer = await connect(cluster.kubeconfig);
  const labels = { set: 'lean' };
  await writer.create(ConfigMap, { metadata: { namespace, name: 'lean', labels }, data: { a: '1', b: '2' } });
  const selection = { namespaces: [namespace], labelSelector: 'set=lean' };
  const { cache } = await start(cluster.kubeconfig, {
    ...selection,
    transform: (object) => ({ ...object, data: { a: object.data?.a ?? '' } }),
  });
  expect(cache.get({ namespace, name: 'lean' })?.data).toEqual({ a: '1' });
  const { cache: bare } = await start(cluster.kubeconfig, { ...selection, metadataOnly: true });
  expect(bare.get({ namespace, name: 'lean' })).toMatchObject({ metadata: { name: 'lean', labels } });
  expect(bare.get({ namespace, name: 'lean' })?.data).toBeUndefined();
});

test('byIndex finds objects by an indexed value, even after the value of an object has changed', async ({
  cluster,
  namespace,
}) => {
  const { cache, client } = await start(cluster.kubeconfig, {
    namespaces: [namespace],
    labelSelector: 'set=indexed',
    indexers: { owner: ({ data }) => (data?.owner === undefined ? [] : [data.owner]) },
  });
  const labels = { set: 'indexed' };
  const third = next(cache, ({ key }) => key.endsWith('/c'));
  for (const [name, owner] of [
    ['a', 'x'],
    ['b', 'y'],
    ['c', 'x'],
  ] as const) {
    await client.create(ConfigMap, { metadata: { namespace, name, labels }, data: { owner } });
  }
  await third;
  const names = (owner: string) =>
    [...cache.byIndex('owner', owner)].map(({ metadata }) => metadata.name).sort();
  expect([names('x'), names('y'), names('z')]).toEqual([['a', 'c'], ['b'], []]);
  const moved = next(cache, ({ type }) => type === 'changed');
  await client.mergePatch(ConfigMap, { namespace, name: 'c' }, { data: { owner: 'y' } });
  await moved;
  expect([names('x'), names('y')]).toEqual([['a'], ['b', 'c']]);
  expect(() => [...cache.byIndex('color', 'red')]).toThrow('index "color" does not exist');
});

test('writes of the program are visible immediately, and are never replaced by an older version', async ({
  cluster,
  namespace,
}) => {
  const { cache, client } = await start(cluster.kubeconfig, { namespaces: [namespace] });
  const seen: string[] = [];
  cache.subscribe(({ type, key }) => {
    if (key === `${namespace}/own`) seen.push(type);
  });
  const metadata = { namespace, name: 'own' };
  const first = await client.create(ConfigMap, { metadata, data: { n: '1' } });
  cache.onWrite(first);
  expect(cache.get(metadata)?.data).toEqual({ n: '1' });
  const second = await client.mergePatch(ConfigMap, metadata, { data: { n: '2' } });
  cache.onWrite(second);
  cache.onWrite(first); // the response to the first write arrives late
  expect(cache.get(metadata)?.data).toEqual({ n: '2' });

  await client.delete(ConfigMap, metadata);
  cache.onDelete(metadata, second.metadata.uid ?? '');
  cache.onWrite(second);
  expect(cache.get(metadata)).toBeUndefined();
  // When a later object arrives, the watch has delivered all changes above.
  const later = next(cache, ({ key }) => key.endsWith('/fence'));
  await client.create(ConfigMap, { metadata: { namespace, name: 'fence' } });
  await later;
  expect(seen).toEqual(['added', 'changed', 'removed']);
});

test('a metadataOnly cache drops the content of objects that the program writes; items of a client list have kind and apiVersion', async ({
  cluster,
  namespace,
}) => {
  const { cache, client } = await start(cluster.kubeconfig, { namespaces: [namespace], metadataOnly: true });
  const seen = next(cache, ({ key }) => key.endsWith('/spare'));
  const metadata = { namespace, name: 'spare' };
  cache.onWrite(await client.create(ConfigMap, { metadata, data: { password: 'hunter2' } }));
  await seen;
  expect(JSON.stringify([...cache.list()])).not.toContain('hunter2');
  const { items } = await client.list(ConfigMap, { namespace });
  expect(items.every(({ apiVersion, kind }) => apiVersion === 'v1' && kind === 'ConfigMap')).toBe(true);
});

test('a cache rejects an empty list of namespaces', async ({ cluster }) => {
  await expect(start(cluster.kubeconfig, { namespaces: [] })).rejects.toThrow(
    'has an empty list of namespaces',
  );
});

test('a write of the program immediately adds the object to a cache with a selector, or removes it if it does not match', async ({
  cluster,
  namespace,
}) => {
  const { cache, client } = await start(cluster.kubeconfig, {
    namespaces: [namespace],
    labelSelector: 'app in (a, b), !hidden',
    fieldSelector: 'metadata.name!=other',
  });
  const metadata = { namespace, name: 'chosen', labels: { app: 'a' } };
  const write = async (labels: object, name = 'chosen') => {
    const written = await client.mergePatch(ConfigMap, { namespace, name }, { metadata: { labels } });
    cache.onWrite(written);
    return cache.get({ namespace, name })?.metadata.labels;
  };
  const first = await client.create(ConfigMap, { metadata });
  cache.onWrite(first);
  expect(cache.get(metadata)?.metadata.labels).toEqual({ app: 'a' });
  cache.onWrite(await client.create(ConfigMap, { metadata: { ...metadata, name: 'other' } }));
  expect(cache.get({ namespace, name: 'other' })).toBeUndefined();
  expect(await write({ hidden: 'yes' })).toBeUndefined();
  cache.onWrite(first); // the response to the first write arrives late
  expect(cache.get(metadata)).toBeUndefined();
  expect(await write({ hidden: null, app: 'b' })).toEqual({ app: 'b' });
  expect(await write({ app: 'c' })).toBeUndefined();
  // When a later object arrives, the watch has delivered all changes above.
  const later = next(cache, ({ key }) => key.endsWith('/chosen-fence'));
  await client.create(ConfigMap, { metadata: { ...metadata, name: 'chosen-fence' } });
  await later;
  expect([...cache.keys()]).toEqual([`${namespace}/chosen-fence`]);
  expect(await write({ app: 'a' })).toEqual({ app: 'a' });
});

test('a cache rejects an invalid label selector', async ({ cluster }) => {
  await expect(start(cluster.kubeconfig, { labelSelector: 'a===b' })).rejects.toThrow(
    'invalid label selector "a===b": use a=b, a!=b, a, !a, a in (b,c) or a notin (b,c)',
  );
});

test('byIndex yields an object once even if it is written during the iteration', async ({
  cluster,
  namespace,
}) => {
  const { cache, client } = await start(cluster.kubeconfig, {
    namespaces: [namespace],
    indexers: { all: () => ['x'] },
  });
  for (const name of ['once-a', 'once-b'])
    cache.onWrite(await client.create(ConfigMap, { metadata: { namespace, name }, data: { n: '0' } }));
  const seen: string[] = [];
  for (const { metadata } of cache.byIndex('all', 'x')) {
    if (!metadata.name.startsWith('once-')) continue;
    seen.push(metadata.name);
    cache.onWrite(await client.mergePatch(ConfigMap, metadata, { data: { n: String(seen.length) } }));
  }
  expect(seen.sort()).toEqual(['once-a', 'once-b']);
});

test('an error in transform or indexer is reported with the object, and other objects are cached', async ({
  cluster,
  namespace,
}) => {
  const errors: string[] = [];
  const { cache, client } = await start(cluster.kubeconfig, {
    namespaces: [namespace],
    transform: (object) => {
      if (object.metadata.name === 'odd') throw new Error('transform bug');
      return { ...object, data: { transformed: 'yes' } };
    },
    indexers: {
      first: ({ metadata, data }) => {
        if (metadata.name === 'odd') throw new Error('indexer bug');
        return [data?.transformed ?? ''];
      },
    },
    onError: (error) => errors.push(String(error)),
  });
  const all = next(cache, ({ key }) => key.endsWith('/even'));
  await client.create(ConfigMap, { metadata: { namespace, name: 'odd' }, data: { n: '1' } });
  await client.create(ConfigMap, { metadata: { namespace, name: 'even' }, data: { n: '2' } });
  await all;
  expect(cache.get(`${namespace}/odd`)?.data).toEqual({ n: '1' });
  expect(cache.get(`${namespace}/even`)?.data).toEqual({ transformed: 'yes' });
  expect([...cache.byIndex('first', 'yes')].map(({ metadata }) => metadata.name)).toContain('even');
  expect(errors).toEqual([
    `Error: the transform of configmaps ${namespace}/odd failed: transform bug`,
    `Error: the index "first" of configmaps ${namespace}/odd failed: indexer bug`,
  ]);
});
