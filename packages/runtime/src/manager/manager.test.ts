import { createServer } from 'node:net';
import { collectingLogger, nodeWorld, silentLogger } from '@vmwright/core';
import { listen } from '@vmwright/core/testing';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { kubeconfigAccess } from '../access/kubeconfig.ts';
import { BackendUnavailableError } from '../availability/availability.ts';
import type { Client } from '../client/client.ts';
import type { ReconcileContext, WorkContext } from '../controller/context.ts';
import { LeadershipLostError, NotLeadingError } from '../election/errors.ts';
import { Event } from '../kind/builtin/event.ts';
import { Lease } from '../kind/builtin/lease.ts';
import { ValidatingWebhookConfiguration } from '../kind/builtin/webhook-configuration.ts';
import { Manager, type ManagerOptions } from './manager.ts';

const ELECTION = { name: 'manager-test', leaseMs: 15_000, renewMs: 10_000, retryMs: 300 };

/** The lead is lost within 1.5 s, and may be another's 0.5 s later. */
const QUICK_ELECTION = { ...ELECTION, leaseMs: 2_000, renewMs: 1_500 };

/** Another takes the lease. */
const steal = (client: Client, namespace: string) =>
  client.mergePatch(Lease, { namespace, name: ELECTION.name }, { spec: { holderIdentity: 'another' } });

/** Adds a controller that does not end what it has begun, whatever the signal says, until the test is over. */
function stubborn() {
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  onTestFinished(() => released.resolve());
  const add = (manager: Manager) =>
    manager.control({
      name: 'stubborn',
      for: ConfigMap,
      reconcile: async () => {
        begun.resolve();
        await released.promise;
      },
    });
  return { add, begun: begun.promise };
}

async function start(
  kubeconfig: string,
  options: Partial<ManagerOptions>,
  act: (name: string) => void,
  add: (manager: Manager) => unknown = () => undefined,
) {
  const access = await kubeconfigAccess({ world: nodeWorld, path: kubeconfig });
  const { logger, lines } = collectingLogger();
  const manager = new Manager({ world: nodeWorld, access, name: 'manager-test', log: logger, ...options });
  manager.control({ for: ConfigMap, reconcile: async ({ metadata }) => act(metadata.name) });
  add(manager);
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

test('acts in the namespaces that it may list, is ready, and says which it may not', async ({
  cluster,
  namespace: forbidden,
}) => {
  await using home = await cluster.namespace();
  const namespace = home.name;
  const role = ['-n', namespace, 'create', 'role', 'reader', '--verb=list,watch', '--resource=configmaps'];
  await cluster.kubectl(role);
  const whom = `--serviceaccount=${namespace}:default`;
  await cluster.kubectl(['-n', namespace, 'create', 'rolebinding', 'reader', '--role=reader', whom]);
  await cluster.kubectl(['-n', namespace, 'create', 'configmap', 'seen']);
  await cluster.kubectl(['-n', forbidden, 'create', 'configmap', 'unseen']);
  const acted = Promise.withResolvers<void>();
  const names: string[] = [];
  const { manager, lines } = await start(
    await cluster.kubeconfigFor({ namespace, name: 'default' }),
    { namespaces: [namespace, forbidden], status: { port: 0, host: '127.0.0.1' } },
    (name) => {
      names.push(name);
      if (name === 'seen') acted.resolve();
    },
  );
  await acted.promise;
  expect(manager.ready).toBe(true);
  const port = lines.find((line) => line.port !== undefined)?.port;
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  expect(await get('/readyz')).toBe('ok');
  expect(await get('/readyz?verbose')).toContain(`[+]caches ok: without configmaps in ${forbidden}\n`);
  expect(lines.filter(({ msg }) => /cannot be listed|watch has failed/.test(String(msg)))).toMatchObject([
    { kind: 'configmaps', namespace: forbidden, error: expect.stringContaining('forbidden') },
  ]);
  expect(names).not.toContain('unseen');
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

test('a job runs on the leader alone, comes again after a failure, and may write only while it leads', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const options = { namespaces: [namespace.name], election: { ...ELECTION, namespace: namespace.name } };
  const runs = { first: 0, second: 0 };
  let told = Promise.withResolvers<void>();
  const until = async (is: () => boolean) => {
    while (!is()) await told.promise;
  };
  const contexts: WorkContext[] = [];
  const sweep = (who: 'first' | 'second') => (manager: Manager) =>
    manager.job({
      name: 'sweep',
      everyMs: 20,
      reads: [ConfigMap],
      run: async (context) => {
        runs[who] += 1;
        contexts.push(context);
        told.resolve();
        told = Promise.withResolvers();
        if (runs[who] === 1) throw new Error('the outside is away');
        if (runs[who] === 2) throw new BackendUnavailableError('cloud', 'no answer');
        const metadata = { namespace: namespace.name, name: 'swept' };
        await context.client.apply(ConfigMap, { metadata, data: { by: who } });
        expect(context.cache(ConfigMap).get(metadata)?.data?.by).toBe(who);
      },
    });
  const first = await start(cluster.kubeconfig, options, () => undefined, sweep('first'));
  await until(() => runs.first >= 3);
  const second = await start(cluster.kubeconfig, options, () => undefined, sweep('second'));
  await second.manager.caches.synced();
  await until(() => runs.first >= 6);
  expect(runs.second).toBe(0);
  expect(first.lines).toContainEqual(
    expect.objectContaining({
      msg: 'the job has failed; it comes again',
      job: 'sweep',
      error: 'the outside is away',
    }),
  );
  expect(first.lines).toContainEqual(
    expect.objectContaining({ level: 'debug', msg: 'Job failed: backend unavailable', backend: 'cloud' }),
  );
  first.stop.abort();
  await first.running;
  const before = runs.first;
  await until(() => runs.second >= 4); // the third has written: the first two fail
  expect(runs.first).toBe(before);
  expect(() => contexts[0]?.assertLeader()).toThrow(NotLeadingError);
  expect((await client.get(ConfigMap, { namespace: namespace.name, name: 'swept' })).data).toEqual({
    by: 'second',
  });
});

test('what cannot work is refused before it runs', async ({ cluster, namespace }) => {
  const { manager } = await start(
    cluster.kubeconfig,
    { namespaces: [namespace] },
    () => undefined,
    (added) => {
      expect(() => added.control({ for: ConfigMap, reconcile: async () => undefined })).toThrow(
        'there are two controllers or jobs called configmap; give one another `name`',
      );
      expect(() =>
        added.control({ name: 'mine/yours', for: ConfigMap, reconcile: async () => undefined }),
      ).toThrow('no events can be told as manager-test/mine/yours');
      expect(() => added.caches.get(ConfigMap, { metadataOnly: true })).toThrow(
        'the cache of configmaps is in use already; configure it before the first controller that reads it',
      );
      expect(() => added.job({ name: 'idle', everyMs: 0, run: async () => undefined })).toThrow(
        'the job idle wants milliseconds from 1 on, not 0',
      );
    },
  );
  expect(() => manager.control({ name: 'late', for: ConfigMap, reconcile: async () => undefined })).toThrow(
    'late is added while the manager runs; add it before',
  );
});

test('a replica that has lost the lead and whose reconcile does not end gives up before another may act', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const { add, begun } = stubborn();
  const election = { ...QUICK_ELECTION, namespace: namespace.name };
  const { running } = await start(
    cluster.kubeconfig,
    { namespaces: [namespace.name], election },
    () => undefined,
    add,
  );
  await begun;
  await steal(client, namespace.name);
  // Of the 30 s that a stop may take there are but those until the other may begin.
  await expect(running).rejects.toThrow(/a reconcile has not ended within 0\.\d+ s of being asked to/);
  const lease = await client.get(Lease, { namespace: namespace.name, name: ELECTION.name });
  expect(lease.spec?.holderIdentity).toBe('another');
});

test('the lead is renewed while all connections for other requests are taken by slow ones', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  await using slow = await slowCreates(client, namespace.name);
  const busy = new AbortController();
  onTestFinished(() => busy.abort());
  const { lines } = await start(
    cluster.kubeconfig,
    {
      namespaces: [namespace.name],
      election: { ...ELECTION, namespace: namespace.name, leaseMs: 4_000, renewMs: 3_000, retryMs: 300 },
    },
    () => undefined,
    (manager) =>
      manager.control({
        name: 'busy',
        for: ConfigMap,
        reconcile: async ({ metadata }, context) => {
          if (metadata.name !== 'kube-root-ca.crt') return;
          const creates = Array.from({ length: 20 }, (_, i) =>
            context.client
              .create(
                ConfigMap,
                { metadata: { namespace: namespace.name, name: `slow-${i}` } },
                { signal: busy.signal },
              )
              .catch(() => undefined),
          );
          await Promise.all(creates);
        },
      }),
  );
  await slow.begun;
  const lease = { namespace: namespace.name, name: ELECTION.name };
  const renewals = new Set<string | undefined>();
  const fieldSelector = `metadata.name=${lease.name}`;
  // More than the time of a lease in which no other request gets a connection.
  for await (const event of client.watch(Lease, {
    namespace: lease.namespace,
    fieldSelector,
    resourceVersion: '0',
  })) {
    if (event.type !== 'BOOKMARK') renewals.add(event.object.spec?.renewTime);
    if (renewals.size > 18) break;
  }
  expect(lines.flatMap(({ leading }) => (leading === undefined ? [] : [leading]))).toEqual([false, true]);
  busy.abort();
});

test("the API server's warnings are told, each once", async ({ cluster, namespace }) => {
  const { manager, lines } = await start(cluster.kubeconfig, { namespaces: [namespace] }, () => undefined);
  const metadata = { namespace, name: 'warned' };
  for (let i = 0; i < 2; i++)
    await manager.client.mergePatch(ConfigMap, await created(), {
      metadata: { labels: {} },
      surplus: `${i}`,
    });
  async function created() {
    return (await manager.client.apply(ConfigMap, { metadata })).metadata;
  }
  const warnings = lines.filter(({ msg }) => msg === 'the API server warns; this is told once');
  expect(warnings).toEqual([expect.objectContaining({ level: 'warn', warning: 'unknown field "surplus"' })]);
});

/** Lets creates of config maps in a namespace wait for ten seconds, by a webhook that accepts connections and says nothing. */
async function slowCreates(client: Client, namespace: string) {
  const silent = createServer();
  const port = await listen(silent, onTestFinished);
  const begun = new Promise((resolve) =>
    silent.on('connection', (socket) => resolve(socket.on('error', () => undefined))),
  );
  await client.create(ValidatingWebhookConfiguration, {
    metadata: { name: namespace },
    webhooks: [
      {
        name: 'silent.vmwright.dev',
        clientConfig: { url: `https://127.0.0.1:${port}/` },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        failurePolicy: 'Ignore',
        timeoutSeconds: 10,
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  });
  return {
    begun,
    [Symbol.asyncDispose]: () => client.delete(ValidatingWebhookConfiguration, { name: namespace }),
  };
}

test('a replica that stops, and loses the lead while it winds up, has no more time than one that only loses it', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const { add, begun } = stubborn();
  const election = { ...QUICK_ELECTION, namespace: namespace.name };
  const { running, stop } = await start(
    cluster.kubeconfig,
    { namespaces: [namespace.name], election },
    () => undefined,
    add,
  );
  await begun;
  stop.abort();
  await steal(client, namespace.name);
  await expect(running).rejects.toThrow('a reconcile has not ended within 0.5 s of being asked to');
});

test('a call without an answer ends when the lead is lost, and the replica stands by again', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  await using slow = await slowCreates(client, namespace.name);
  const ended = Promise.withResolvers<unknown>();
  const election = { ...QUICK_ELECTION, namespace: namespace.name };
  const { lines } = await start(
    cluster.kubeconfig,
    { namespaces: [namespace.name], election },
    () => undefined,
    (manager) =>
      manager.control({
        name: 'waiting',
        for: ConfigMap,
        reconcile: async (_, context) => {
          const metadata = { namespace: namespace.name, name: 'slow' };
          await context.client.create(ConfigMap, { metadata }).catch((error) => {
            ended.resolve(error);
            throw error;
          });
        },
      }),
  );
  await slow.begun;
  await steal(client, namespace.name);
  expect(await ended.promise).toBeInstanceOf(LeadershipLostError);
  await expect
    .poll(() => lines.flatMap(({ leading }) => (leading === undefined ? [] : [leading])), { timeout: 30_000 })
    .toEqual([false, true, false, true]);
});

test('in the next term of the same process, a reconcile of the term before may write nothing', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const contexts: { readonly object: ConfigMap; readonly context: ReconcileContext<ConfigMap> }[] = [];
  const election = { ...QUICK_ELECTION, namespace: namespace.name };
  await start(
    cluster.kubeconfig,
    { namespaces: [namespace.name], election },
    () => undefined,
    (manager) =>
      manager.control({
        name: 'keeping',
        for: ConfigMap,
        reconcile: async (object, context) => {
          if (object.metadata.name === 'kept') contexts.push({ object, context });
        },
      }),
  );
  const ref = { namespace: namespace.name, name: 'kept' };
  await client.create(ConfigMap, { metadata: ref });
  await expect.poll(() => contexts.length).toBe(1);
  await steal(client, namespace.name);
  await expect.poll(() => contexts.length).toBe(2);
  const [first, second] = contexts;
  second?.context.assertLeader();
  expect(() => first?.context.assertLeader()).toThrow(NotLeadingError);
  expect(first?.context.fence.signal.reason).toBeInstanceOf(LeadershipLostError);
  await expect(first?.context.client.mergePatch(ConfigMap, ref, { data: { by: 'first' } })).rejects.toThrow();
  if (first !== undefined)
    first.context.event(first.object, { type: 'Normal', reason: 'Late', note: 'of the term before' });
  await second?.context.client.mergePatch(ConfigMap, ref, { data: { by: 'second' } });
  if (second !== undefined)
    second.context.event(second.object, { type: 'Normal', reason: 'Now', note: 'of this term' });
  const reasons = async () =>
    (await client.list(Event, { namespace: namespace.name })).items.map(({ reason }) => reason);
  await expect.poll(reasons).toContain('Now');
  expect(await reasons()).not.toContain('Late');
  expect((await client.get(ConfigMap, ref)).data).toEqual({ by: 'second' });
});
