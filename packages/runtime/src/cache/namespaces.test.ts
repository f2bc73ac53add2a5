import type { Cluster } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { waitForPermissions } from '../../test/permissions.ts';
import { withShortBackoffs } from '../../test/worlds.ts';
import type { Client } from '../client/client.ts';
import { ForbiddenError } from '../client/errors.ts';
import { ignoreNotFound } from '../client/ignore.ts';
import { Namespace } from '../kind/builtin/namespace.ts';
import { Secret } from '../kind/builtin/secret.ts';
import { ObjectCache } from './cache.ts';
import type { CacheEvent } from './cache-event.ts';
import type { CacheOptions } from './cache-options.ts';
import { Caches } from './caches.ts';

const world = withShortBackoffs(20);

/** Creates namespaces with objects, and a client without permissions in any of them. */
async function setUp(cluster: Cluster, count: number) {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const admin = stack.use(await connect(cluster.kubeconfig));
  const names: string[] = [];
  while (names.length < count) names.push(stack.use(await cluster.namespace()).name);
  const [home = ''] = names;
  const client = stack.use(await connect(await cluster.kubeconfigFor({ namespace: home, name: 'default' })));
  for (const namespace of names) {
    await admin.create(ConfigMap, { metadata: { namespace, name: 'first' } });
    await admin.create(Secret, { metadata: { namespace, name: 'first' } });
  }
  const kubectl = (namespace: string, ...args: readonly string[]) =>
    cluster.kubectl(['-n', namespace, ...args]);
  /** Waits until the change of a role has taken effect. */
  const effective = (namespace: string, resource: string, isGranted: boolean) => {
    const permissions = ['list', 'watch'].map((verb) => ({ verb, resource, namespace }));
    return waitForPermissions(cluster, { namespace: home, name: 'default' }, permissions, isGranted);
  };
  /** Lets the client list and watch a resource. */
  const allow = async (namespace: string, resource: string) => {
    await kubectl(namespace, 'create', 'role', resource, '--verb=list,watch', `--resource=${resource}`);
    const subject = `--serviceaccount=${home}:default`;
    await kubectl(namespace, 'create', 'rolebinding', resource, `--role=${resource}`, subject);
    await effective(namespace, resource, true);
  };
  const forbid = async (namespace: string, resource: string) => {
    await kubectl(namespace, 'delete', 'role,rolebinding', resource);
    await effective(namespace, resource, false);
  };
  const stop = new AbortController();
  const run = (cache: { run(signal: AbortSignal): Promise<void> }) => {
    const running = cache.run(stop.signal);
    stack.defer(async () => {
      stop.abort();
      await running;
    });
  };
  return { admin, client, names, allow, forbid, run, signal: stop.signal, stack, stop };
}

/** A list of lines, with a function that waits until the list satisfies a condition. */
function recorder() {
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  return {
    lines,
    add: (line: string) => {
      lines.push(line);
      for (const resume of waiting) resume();
    },
    until: async (holds: () => boolean) => {
      while (!holds())
        await new Promise<void>((resolve) => {
          waiting.add(resolve);
        });
    },
  };
}

/** A cache of ConfigMaps that records its watches, events and errors. */
function cacheOf(
  client: Client,
  namespaces: readonly string[],
  options: Partial<CacheOptions<ConfigMap>> = {},
) {
  const { lines, add, until } = recorder();
  const short = (namespace: string) => 'abc'[namespaces.indexOf(namespace)] ?? namespace;
  let server = new AbortController();
  const cache = new ObjectCache({
    world,
    client: {
      pages: (kind, options) => client.pages(kind, options),
      async *watch(kind, options) {
        const { signal: ended } = server;
        add(`watch ${short(options?.namespace ?? '')}`);
        const signal = AbortSignal.any([ended, ...(options?.signal ? [options.signal] : [])]);
        try {
          yield* client.watch(kind, { ...options, signal });
        } catch (error) {
          if (!ended.aborted) throw error;
        }
      },
    },
    kind: ConfigMap,
    namespaces,
    ...options,
    onError: (error) => add(`failed ${error}`),
    onListable: (namespace, is, error) => {
      const code = error instanceof ForbiddenError ? ` ${error.code}` : '';
      add(`${short(namespace)} ${is ? 'can' : 'cannot'} be listed${code}`);
    },
  });
  const reports = () => lines.filter((line) => !line.startsWith('watch'));
  /** Ends the open watches, as the server does after some minutes. */
  const endWatches = () => {
    const ended = server;
    server = new AbortController();
    ended.abort();
  };
  const events: CacheEvent<ConfigMap>[] = [];
  cache.subscribe((event) => {
    events.push(event);
    add(`watch event ${event.type} ${event.key}`);
  });
  const next = async (type: string, key: string) => {
    const matches = (event: CacheEvent<ConfigMap>) => event.type === type && event.key === key;
    await until(() => events.some(matches));
    return events.find(matches);
  };
  return { cache, lines, reports, endWatches, until, events, next };
}

test('a cache of several namespaces syncs although one is forbidden, and adds the objects of that one when access is granted', async ({
  cluster,
}) => {
  const { admin, client, names, allow, run } = await setUp(cluster, 2);
  const [a = '', b = ''] = names;
  await allow(a, 'configmaps');
  const { cache, lines, reports, until, events, next } = cacheOf(client, names);
  run(cache);
  await cache.waitForSync();
  expect(cache.get(`${a}/first`)).toBeDefined();
  expect([...cache.keys()].filter((key) => key.startsWith(b))).toEqual([]);
  expect([cache.hasSynced, cache.unlistable]).toEqual([true, [b]]);
  const inA = next('added', `${a}/second`);
  await admin.create(ConfigMap, { metadata: { namespace: a, name: 'second' } });
  expect(await inA).toMatchObject({ initial: false });

  const tries = () => lines.filter((line) => line === 'watch b').length;
  const before = tries();
  await until(() => tries() >= before + 2);
  expect(reports()).toEqual(['b cannot be listed FORBIDDEN']);

  await allow(b, 'configmaps');
  expect(await next('added', `${b}/first`)).toMatchObject({ initial: true });
  expect(reports()).toEqual(['b cannot be listed FORBIDDEN', 'b can be listed']);
  expect(cache.unlistable).toEqual([]);
  expect(cache.get(`${b}/first`)).toBeDefined();
  const inB = next('added', `${b}/second`);
  await admin.create(ConfigMap, { metadata: { namespace: b, name: 'second' } });
  expect(await inB).toMatchObject({ initial: false });
  expect(events.filter(({ type }) => type === 'removed')).toEqual([]);
});

test('a cache does not sync while every namespace is forbidden', async ({ cluster }) => {
  const { client, names, allow, run } = await setUp(cluster, 2);
  const { cache, reports, until } = cacheOf(client, names);
  run(cache);
  await until(() => reports().length === 2);
  expect([cache.hasSynced, cache.unlistable]).toEqual([false, names]);
  const [a = ''] = names;
  await allow(a, 'configmaps');
  await cache.waitForSync();
  expect(cache.get(`${a}/first`)).toBeDefined();
});

test('if the only watched namespace is forbidden, the cache does not sync, and reports every failed attempt to list it', async ({
  cluster,
}) => {
  const { client, names, run } = await setUp(cluster, 1);
  const { cache, reports, until } = cacheOf(client, names);
  run(cache);
  await until(() => reports().length >= 4);
  expect([cache.hasSynced, cache.unlistable]).toEqual([false, []]);
  expect(reports().every((line) => line.startsWith('failed ForbiddenError'))).toBe(true);
});

test('a namespace that becomes forbidden keeps its cached objects, and is updated when access is granted again', async ({
  cluster,
}) => {
  const { admin, client, names, allow, forbid, run } = await setUp(cluster, 2);
  const [, b = ''] = names;
  for (const namespace of names) await allow(namespace, 'configmaps');
  const { cache, reports, endWatches, until, events, next } = cacheOf(client, names);
  run(cache);
  await cache.waitForSync();
  await forbid(b, 'configmaps');
  endWatches(); // the server does not end an open watch when the permission is removed
  await until(() => reports().length > 0);
  expect(reports()).toEqual(['b cannot be listed FORBIDDEN']);
  expect([cache.unlistable, cache.hasSynced]).toEqual([[b], true]);
  await admin.mergePatch(ConfigMap, { namespace: b, name: 'first' }, { data: { since: 'then' } });
  expect(cache.get(`${b}/first`)).toBeDefined();
  expect(events.filter(({ type }) => type === 'removed')).toEqual([]);

  await allow(b, 'configmaps');
  await next('changed', `${b}/first`);
  expect(cache.get(`${b}/first`)?.data).toEqual({ since: 'then' });
  await until(() => reports().length === 2);
  expect(cache.unlistable).toEqual([]);
});

test('when a forbidden namespace is deleted, its objects leave the cache, and refresh() no longer returns the namespace', async ({
  cluster,
}) => {
  const { admin, client, names, allow, forbid, run, signal } = await setUp(cluster, 2);
  const [, b = ''] = names;
  for (const namespace of names) await allow(namespace, 'configmaps');
  const { cache, reports, endWatches, until, next } = cacheOf(client, names, {
    namespaceExists: async (name) => (await ignoreNotFound(admin.get(Namespace, { name }))) !== undefined,
  });
  run(cache);
  await cache.waitForSync();
  await forbid(b, 'configmaps');
  endWatches();
  await until(() => reports().length > 0);
  expect([await cache.refresh(signal), cache.get(`${b}/first`) !== undefined]).toEqual([[b], true]);

  await cluster.kubectl(['delete', 'namespace', b]);
  await next('removed', `${b}/first`);
  expect([await cache.refresh(signal), cache.unlistable]).toEqual([[], [b]]);
  await admin.create(Namespace, { metadata: { name: b } }); // the cleanup of `setUp` deletes this namespace again
});

test('a namespace becomes visible in all caches together, once every kind can be listed in it', async ({
  cluster,
}) => {
  const { client, names, allow, signal, stop, stack } = await setUp(cluster, 2);
  const [a = '', b = ''] = names;
  await allow(a, 'configmaps');
  await allow(a, 'secrets');
  await allow(b, 'configmaps');
  const { lines, add, until } = recorder();
  const caches = new Caches({
    world,
    client: {
      pages: (kind, options) => client.pages(kind, options),
      async *watch(kind, options) {
        for await (const event of client.watch(kind, options)) {
          yield event;
          if (event.type === 'BOOKMARK' && event.initialEventsEnd)
            add(`${kind.plural} listed in ${options?.namespace}`);
        }
      },
    },
    namespaces: names,
    onError: (_, error) => add(String(error)),
    onListable: ({ plural }, namespace, is) => add(`${plural} in ${namespace}: ${is}`),
  });
  const [configMaps, secrets] = [caches.get(ConfigMap), caches.get(Secret)];
  stack.defer(async () => {
    stop.abort();
    await caches.ended();
  });
  await caches.start(signal);
  await until(() => lines.includes(`configmaps listed in ${b}`));
  expect([caches.unsynced, caches.unlistable]).toEqual([[], [`secrets in ${b}`]]);
  expect([configMaps.get(`${a}/first`), secrets.get(`${a}/first`)]).not.toContain(undefined);
  expect([...configMaps.keys(), ...secrets.keys()].filter((key) => key.startsWith(`${b}/`))).toEqual([]);

  /** Name of the Secret that is cached when a subscriber is notified of the ConfigMap in the namespace `b`. */
  const seen = new Promise((resolve) => {
    configMaps.subscribe(({ key }) => {
      if (key === `${b}/first`) queueMicrotask(() => resolve(secrets.get(key)?.metadata.name));
    });
  });
  await allow(b, 'secrets');
  expect(await seen).toBe('first');
  expect(caches.unlistable).toEqual([]);
});
