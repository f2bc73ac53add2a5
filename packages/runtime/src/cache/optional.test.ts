import { type Cluster, condition } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { heldBackoffs } from '../../test/worlds.ts';
import type { Client } from '../client/client.ts';
import { apiError } from '../client/errors.ts';
import { CustomResourceDefinition, crdOf, crdYaml } from '../kind/crd.ts';
import { defineKind } from '../kind/define.ts';
import { object, string } from '../kind/schema/index.ts';
import { startManager } from '../testing/index.ts';
import { ObjectCache } from './cache.ts';

const Gadget = defineKind({
  group: 'optional.example.com',
  version: 'v1',
  kind: 'Gadget',
  plural: 'gadgets',
  spec: object({ size: string() }),
});

/** Runs a controller of ConfigMaps that reads gadgets, and records the result of each reconcile. */
async function start(cluster: Cluster, namespaces: readonly string[]) {
  const client = await connect(cluster.kubeconfig);
  onTestFinished(() => client[Symbol.asyncDispose]());
  const seen: string[] = [];
  const waiting = new Set<() => void>();
  const backoffs = heldBackoffs();
  const { world } = backoffs;
  const running = await startManager(cluster, { world, namespaces }, (manager) => {
    manager.caches.get(Gadget, { optional: true });
    manager.control({
      for: ConfigMap,
      reads: [Gadget],
      reconcile: async ({ metadata: { name } }, { cache }) => {
        if (name !== 'reader') return;
        const gadgets = cache(Gadget);
        seen.push(gadgets.isServed ? `${[...gadgets.list()].length} gadgets` : 'not installed');
        for (const resume of waiting) resume();
      },
    });
  });
  onTestFinished(() => running[Symbol.asyncDispose]());
  const until = async (result: string, since: number) => {
    while (!seen.slice(since).includes(result))
      await new Promise<void>((resolve) => {
        waiting.add(resolve);
      });
    return seen.length;
  };
  return { ...running, client, until, backoffs };
}

async function installGadgets(cluster: Cluster, client: Client): Promise<void> {
  await cluster.apply(await crdYaml(Gadget));
  await cluster.waitFor(
    `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crdOf(Gadget).metadata.name}`,
    (crd) => condition(crd, 'Established') === 'True',
  );
  // The API server itself also watches the CRD, so it may serve the kind a moment after the condition is True.
  const isServed = () => client.list(Gadget).then(() => true);
  await expect.poll(() => isServed().catch(() => false)).toBe(true);
}

test('an optional kind that was listed in one namespace still counts as served if the watch of another namespace later fails with 404', async ({
  cluster,
}) => {
  await using stack = new AsyncDisposableStack();
  const listed = stack.use(await cluster.namespace()).name;
  const late = stack.use(await cluster.namespace()).name;
  const client = stack.use(await connect(cluster.kubeconfig));
  const isListed = Promise.withResolvers<void>();
  const served: boolean[] = [];
  const cache = new ObjectCache({
    world: heldBackoffs().world,
    client: {
      pages: (kind, options) => client.pages(kind, options),
      async *watch(kind, options) {
        if (options?.namespace === late) {
          await isListed.promise;
          throw apiError('no such kind', { status: 404 });
        }
        for await (const event of client.watch(kind, options)) {
          yield event;
          if (event.type === 'BOOKMARK') isListed.resolve();
        }
      },
    },
    kind: ConfigMap,
    namespaces: [listed, late],
    optional: true,
  });
  cache.onServedChange((isServed) => served.push(isServed));
  const stop = new AbortController();
  const running = cache.run(stop.signal);
  stack.defer(async () => {
    stop.abort();
    await running;
  });
  await cache.waitForSync();
  expect([cache.isServed, served]).toEqual([true, []]);
});

for (const count of [1, 2])
  test(`a manager of ${count === 1 ? 'one namespace' : 'several namespaces'} starts without an optional kind, uses it once it is installed, and continues when it is removed`, async ({
    cluster,
  }) => {
    await using stack = new AsyncDisposableStack();
    const namespaces: string[] = [];
    while (namespaces.length < count) namespaces.push(stack.use(await cluster.namespace()).name);
    const [namespace = ''] = namespaces;
    const { manager, log, client, until, backoffs } = await start(cluster, namespaces);
    /** Installs the kind while the manager waits between two attempts to list it, and then ends that wait. */
    const install = async () => {
      await expect.poll(backoffs.count).toBe(count);
      await installGadgets(cluster, client);
      backoffs.end();
    };
    expect([manager.ready, manager.caches.unserved]).toEqual([true, ['gadgets.optional.example.com']]);
    await client.create(ConfigMap, { metadata: { namespace, name: 'reader' } });
    let since = await until('not installed', 0);

    await install();
    const { metadata: crd } = crdOf(Gadget);
    stack.defer(async () => {
      await cluster.kubectl(['delete', 'crd', crd.name, '--ignore-not-found']);
    });
    since = await until('0 gadgets', since); // the installation of the CRD is enough to enqueue the ConfigMap
    await client.create(Gadget, { metadata: { namespace, name: 'one' }, spec: { size: 'small' } });
    await manager.caches.get(Gadget).refresh(new AbortController().signal);
    expect([...manager.caches.get(Gadget).keys()]).toEqual([`${namespace}/one`]);
    expect(manager.caches.unserved).toEqual([]);

    await client.delete(CustomResourceDefinition, crd);
    since = await until('not installed', since);
    expect([...manager.caches.get(Gadget).keys()]).toEqual([]);
    await manager.caches.get(Gadget).refresh(new AbortController().signal);

    await install();
    await until('0 gadgets', since);
    expect(log.filter(({ kind }) => kind === 'gadgets.optional.example.com').map(({ msg }) => msg)).toEqual([
      'Optional kind is not installed, continuing without it',
      'Optional kind was installed',
      'Optional kind is not installed, continuing without it',
      'Optional kind was installed',
    ]);
  });
