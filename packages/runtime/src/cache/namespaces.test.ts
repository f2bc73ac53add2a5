import { nodeWorld, type World } from '@vmwright/core';
import type { Cluster } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import type { Client } from '../client/client.ts';
import { ForbiddenError } from '../client/errors.ts';
import { Secret } from '../kind/builtin/secret.ts';
import { type CacheEvent, ObjectCache } from './cache.ts';
import { Caches } from './caches.ts';

const FASTER = 20;

/** A world in which a minute passes in three seconds. */
const fastWorld: World = {
  ...nodeWorld,
  monotonic: () => nodeWorld.monotonic() * FASTER,
  after: (ms, callback) => nodeWorld.after(ms / FASTER, callback),
};

/** Namespaces, each with something in it, and somebody who may look into none of them. */
async function somebody(cluster: Cluster, count: number) {
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
  /** Lets him list and watch these. */
  const allow = async (namespace: string, resource: string) => {
    await kubectl(namespace, 'create', 'role', resource, '--verb=list,watch', `--resource=${resource}`);
    const whom = `--serviceaccount=${home}:default`;
    await kubectl(namespace, 'create', 'rolebinding', resource, `--role=${resource}`, whom);
  };
  const forbid = (namespace: string, resource: string) =>
    kubectl(namespace, 'delete', 'role,rolebinding', resource);
  const stop = new AbortController();
  const follow = (cache: { run(signal: AbortSignal): Promise<void> }) => {
    const running = cache.run(stop.signal);
    stack.defer(async () => {
      stop.abort();
      await running;
    });
  };
  return { admin, client, names, allow, forbid, follow, signal: stop.signal, stack, stop };
}

/** Says what becomes of it, and lets others wait for that. */
function notes() {
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  return {
    lines,
    add: (line: string) => {
      lines.push(line);
      for (const wake of waiting) wake();
    },
    until: async (is: () => boolean) => {
      while (!is())
        await new Promise<void>((resolve) => {
          waiting.add(resolve);
        });
    },
  };
}

/** A cache of config maps, and notes of all that it says. */
function cacheOf(client: Client, namespaces: readonly string[]) {
  const { lines, add, until } = notes();
  const short = (namespace: string) => 'abc'[namespaces.indexOf(namespace)] ?? namespace;
  const cache = new ObjectCache({
    world: fastWorld,
    client: {
      pages: (kind, options) => client.pages(kind, options),
      watch: (kind, options) => {
        add(`watch ${short(options?.namespace ?? '')}`);
        return client.watch(kind, options);
      },
    },
    kind: ConfigMap,
    namespaces,
    onError: (error) => add(`failed ${error}`),
    onListable: (namespace, is, error) => {
      const code = error instanceof ForbiddenError ? ` ${error.code}` : '';
      add(`${short(namespace)} ${is ? 'can' : 'cannot'} be listed${code}`);
    },
  });
  // In a world this fast, who has heard a bookmark of a real minute waits for the next in vain: that is no news.
  const isNews = (line: string) => !/^watch|nothing was heard for/.test(line);
  const told = () => lines.filter(isNews);
  const events: CacheEvent<ConfigMap>[] = [];
  cache.subscribe((event) => {
    events.push(event);
    add(`watch event ${event.type} ${event.key}`);
  });
  const next = async (type: string, key: string) => {
    const is = (event: CacheEvent<ConfigMap>) => event.type === type && event.key === key;
    await until(() => events.some(is));
    return events.find(is);
  };
  return { cache, lines, told, until, events, next };
}

test('of several namespaces, one that may not be listed holds up none of the others; when it may be, its objects come in as added', async ({
  cluster,
}) => {
  const { admin, client, names, allow, follow } = await somebody(cluster, 2);
  const [a = '', b = ''] = names;
  await allow(a, 'configmaps');
  const { cache, lines, told, until, events, next } = cacheOf(client, names);
  follow(cache);
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
  expect(told()).toEqual(['b cannot be listed FORBIDDEN']);

  await allow(b, 'configmaps');
  expect(await next('added', `${b}/first`)).toMatchObject({ initial: true });
  expect(told()).toEqual(['b cannot be listed FORBIDDEN', 'b can be listed']);
  expect(cache.unlistable).toEqual([]);
  expect(cache.get(`${b}/first`)).toBeDefined();
  const inB = next('added', `${b}/second`);
  await admin.create(ConfigMap, { metadata: { namespace: b, name: 'second' } });
  expect(await inB).toMatchObject({ initial: false });
  expect(events.filter(({ type }) => type === 'removed')).toEqual([]);
});

test('while none of them may be listed, there is no cache', async ({ cluster }) => {
  const { client, names, allow, follow } = await somebody(cluster, 2);
  const { cache, told, until } = cacheOf(client, names);
  follow(cache);
  await until(() => told().length === 2);
  expect([cache.hasSynced, cache.unlistable]).toEqual([false, names]);
  const [a = ''] = names;
  await allow(a, 'configmaps');
  await cache.waitForSync();
  expect(cache.get(`${a}/first`)).toBeDefined();
});

test('one alone that may not be listed is waited for, and told at each try', async ({ cluster }) => {
  const { client, names, follow } = await somebody(cluster, 1);
  const { cache, told, until } = cacheOf(client, names);
  follow(cache);
  await until(() => told().length >= 4);
  expect([cache.hasSynced, cache.unlistable]).toEqual([false, []]);
  expect(told().every((line) => line.startsWith('failed ForbiddenError'))).toBe(true);
});

test('one that may not be watched any more keeps what is known of it, and is current again when it may be', async ({
  cluster,
}) => {
  const { admin, client, names, allow, forbid, follow } = await somebody(cluster, 2);
  const [, b = ''] = names;
  for (const namespace of names) await allow(namespace, 'configmaps');
  const { cache, told, until, events, next } = cacheOf(client, names);
  follow(cache);
  await cache.waitForSync();
  await forbid(b, 'configmaps');
  await until(() => told().length > 0); // when the watch that is open has ended
  expect(told()).toEqual(['b cannot be listed FORBIDDEN']);
  expect([cache.unlistable, cache.hasSynced]).toEqual([[b], true]);
  await admin.mergePatch(ConfigMap, { namespace: b, name: 'first' }, { data: { since: 'then' } });
  expect(cache.get(`${b}/first`)).toBeDefined();
  expect(events.filter(({ type }) => type === 'removed')).toEqual([]);

  await allow(b, 'configmaps');
  await next('changed', `${b}/first`);
  expect(cache.get(`${b}/first`)?.data).toEqual({ since: 'then' });
  await until(() => told().length === 2);
  expect(cache.unlistable).toEqual([]);
});

test('a namespace in which one kind may not be listed is seen in no cache, and then in all at once', async ({
  cluster,
}) => {
  const { client, names, allow, signal, stop, stack } = await somebody(cluster, 2);
  const [a = '', b = ''] = names;
  await allow(a, 'configmaps');
  await allow(a, 'secrets');
  await allow(b, 'configmaps');
  const { lines, add, until } = notes();
  const caches = new Caches({
    world: fastWorld,
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

  /** What whoever is woken by a config map there sees of the secrets. */
  const seen = new Promise((resolve) => {
    configMaps.subscribe(({ key }) => {
      if (key === `${b}/first`) queueMicrotask(() => resolve(secrets.get(key)?.metadata.name));
    });
  });
  await allow(b, 'secrets');
  expect(await seen).toBe('first');
  expect(caches.unlistable).toEqual([]);
});
