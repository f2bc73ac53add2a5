import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { kubeconfigAccess } from '../access/kubeconfig.ts';
import { NotLeadingError } from '../election/errors.ts';
import { Lease } from '../kind/builtin/lease.ts';
import { collectingLogger } from '../log/collecting-logger.ts';
import { silentLogger } from '../log/logger.ts';
import { nodeWorld } from '../world/node/node-world.ts';
import { Manager, type ManagerOptions } from './manager.ts';

async function start(kubeconfig: string, options: Partial<ManagerOptions>, act: (name: string) => void) {
  const access = await kubeconfigAccess({ world: nodeWorld, path: kubeconfig });
  const { logger, lines } = collectingLogger();
  const manager = new Manager({ world: nodeWorld, access, name: 'manager-test', log: logger, ...options });
  manager.control({ for: ConfigMap, reconcile: async ({ metadata }) => act(metadata.name) });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running.catch(() => undefined);
  });
  return { manager, lines, stop, running };
}

test('of two replicas one acts; when it stops, the other goes on with caches already warm', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const acted = { first: [] as string[], second: [] as string[] };
  let told = Promise.withResolvers<void>();
  const act = (who: 'first' | 'second') => (name: string) => {
    acted[who].push(name);
    told.resolve();
    told = Promise.withResolvers();
  };
  const until = async (is: () => boolean) => {
    while (!is()) await told.promise;
  };
  const options = {
    namespaces: [namespace.name],
    election: {
      name: 'manager-test',
      namespace: namespace.name,
      leaseMs: 15_000,
      renewMs: 10_000,
      retryMs: 300,
    },
  };
  const create = (name: string) =>
    client.create(ConfigMap, { metadata: { namespace: namespace.name, name } });

  const first = await start(cluster.kubeconfig, options, act('first'));
  await create('a');
  await until(() => acted.first.includes('a'));
  const second = await start(cluster.kubeconfig, options, act('second'));
  await second.manager.caches.get(ConfigMap).waitForSync();
  expect(second.manager.ready).toBe(true);
  await create('b');
  await until(() => acted.first.includes('b'));
  expect(acted.second).toEqual([]);

  first.stop.abort();
  await first.running;
  await until(() => acted.second.includes('a') && acted.second.includes('b'));
  const before = acted.first.length;
  await create('c');
  await until(() => acted.second.includes('c'));
  expect(acted.first).toHaveLength(before);
});

test('a replica that does not lead is refused its writes', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const access = await kubeconfigAccess({ world: nodeWorld, path: cluster.kubeconfig });
  const { logger } = collectingLogger();
  const manager = new Manager({
    world: nodeWorld,
    access,
    name: 'refused',
    log: logger,
    namespaces: [namespace.name],
    election: { name: 'refused', namespace: namespace.name, leaseMs: 15_000, renewMs: 10_000, retryMs: 300 },
  });
  const outcome = Promise.withResolvers<unknown>();
  const stop = new AbortController();
  manager.control({
    for: ConfigMap,
    reconcile: async (object, context) => {
      if (object.metadata.name !== 'late') return;
      stop.abort(); // the lead is given up only after this has ended, so it may still write
      await context.client.mergePatch(ConfigMap, object.metadata, { data: { by: 'the leader' } });
      void running.then(async () => {
        outcome.resolve(
          await context.client.mergePatch(ConfigMap, object.metadata, { data: {} }).catch((error) => error),
        );
      });
    },
  });
  const running = manager.run(stop.signal);
  await client.create(ConfigMap, { metadata: { namespace: namespace.name, name: 'late' } });
  expect(await outcome.promise).toBeInstanceOf(NotLeadingError);
  expect((await client.get(ConfigMap, { namespace: namespace.name, name: 'late' })).data).toEqual({
    by: 'the leader',
  });
});

test('tells of itself: health, readiness, metrics under the usual names', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  const seen = Promise.withResolvers<void>();
  const { manager, lines } = await start(
    cluster.kubeconfig,
    { namespaces: [namespace.name], status: { port: 0, host: '127.0.0.1' } },
    () => seen.resolve(),
  );
  await seen.promise;
  expect(manager.ready).toBe(true);
  const port = lines.find((line) => line.port !== undefined)?.port;
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  expect(await get('/readyz?verbose')).toContain('[+]caches ok');
  expect(await get('/healthz')).toBe('ok');
  const metrics = await get('/metrics');
  expect(metrics).toMatch(
    /^controller_runtime_reconcile_total\{controller="configmap",result="success"\} [1-9]/m,
  );
  expect(metrics).toMatch(/^controller_runtime_reconcile_total\{controller="configmap",result="error"\} 0$/m);
  expect(metrics).toMatch(/^workqueue_depth\{name="configmap",controller="configmap"\} 0$/m);
  expect(metrics).toMatch(
    /^rest_client_requests_total\{code="200",method="GET",host="127\.0\.0\.1:\d+"\} [1-9]/m,
  );
});

test('says which kinds it could not list when it gives up', async ({ cluster, namespace }) => {
  const kubeconfig = await cluster.kubeconfigFor({ namespace, name: 'default' });
  const { running, lines } = await start(
    kubeconfig,
    { namespaces: [namespace], syncTimeoutMs: 300 },
    () => undefined,
  );
  await expect(running).rejects.toThrow('no complete list of configmaps after 0.3 s; the log tells why');
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'a watch has failed', kind: 'configmaps' }));
});

test('the lead is not given up while a reconcile does not end', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const access = await kubeconfigAccess({ world: nodeWorld, path: cluster.kubeconfig });
  const manager = new Manager({
    world: nodeWorld,
    access,
    name: 'stubborn',
    log: silentLogger,
    namespaces: [namespace.name],
    graceMs: 100,
    election: { name: 'stubborn', namespace: namespace.name },
  });
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  manager.control({
    for: ConfigMap,
    reconcile: async () => {
      begun.resolve();
      await released.promise; // whatever the signal says
    },
  });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  await begun.promise;
  stop.abort();
  await expect(running).rejects.toThrow('a reconcile has not ended within 0.1 s');
  const lease = await client.get(Lease, { namespace: namespace.name, name: 'stubborn' });
  expect(lease.spec?.holderIdentity).toContain('_');
  released.resolve();
});
