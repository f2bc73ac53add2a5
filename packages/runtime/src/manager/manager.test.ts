import { createServer } from 'node:net';
import { collectingLogger, nodeWorld, silentLogger } from '@vmwright/core';
import { listen } from '@vmwright/core/testing';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { waitForPermissions } from '../../test/permissions.ts';
import { virtualWorld } from '../../test/worlds.ts';
import { kubeconfigAccess } from '../access/kubeconfig.ts';
import { BackendUnavailableError } from '../availability/availability.ts';
import type { Client } from '../client/client.ts';
import type { ReconcileContext, WorkContext } from '../controller/context.ts';
import { LeadershipLostError, NotLeadingError } from '../election/errors.ts';
import { Event } from '../kind/builtin/event.ts';
import { Lease } from '../kind/builtin/lease.ts';
import { ValidatingWebhookConfiguration } from '../kind/builtin/webhook-configuration.ts';
import { Manager } from './manager.ts';
import type { ManagerOptions } from './options.ts';

const ELECTION = { name: 'manager-test', leaseMs: 15_000, renewMs: 10_000, retryMs: 300 };

/** A leader that cannot renew its Lease stops leading after 1.5 s. Another replica can acquire it 0.5 s later. */
const QUICK_ELECTION = { ...ELECTION, leaseMs: 2_000, renewMs: 1_500 };

/** Writes another holder into the Lease. The holder '' releases the Lease. */
const steal = (client: Client, namespace: string, holderIdentity = 'another') =>
  client.mergePatch(Lease, { namespace, name: ELECTION.name }, { spec: { holderIdentity } });

/** `add` adds a controller with a reconcile that ignores its signal and ends only when the test finishes. */
function stubborn() {
  const started = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  onTestFinished(() => released.resolve());
  const add = (manager: Manager) =>
    manager.control({
      name: 'stubborn',
      for: ConfigMap,
      reconcile: async () => {
        started.resolve();
        await released.promise;
      },
    });
  return { add, started: started.promise };
}

async function start(
  kubeconfig: string,
  options: Partial<ManagerOptions>,
  onReconcile: (name: string) => void,
  add: (manager: Manager) => unknown = () => undefined,
) {
  const access = await kubeconfigAccess({ world: nodeWorld, path: kubeconfig });
  const { logger, lines } = collectingLogger();
  const manager = new Manager({ world: nodeWorld, access, name: 'manager-test', log: logger, ...options });
  manager.control({ for: ConfigMap, reconcile: async ({ metadata }) => onReconcile(metadata.name) });
  add(manager);
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  running.catch(() => undefined); // it may reject before the test awaits it
  onTestFinished(async () => {
    stop.abort();
    await running.catch(() => undefined);
  });
  const leading = () => lines.flatMap((line) => (line.leading === undefined ? [] : [line.leading]));
  return { manager, lines, leading, stop, running };
}

test('only the leader of two replicas reconciles; when it stops, the other takes over with synced caches', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const reconciled = { first: [] as string[], second: [] as string[] };
  let changed = Promise.withResolvers<void>();
  const recordIn = (replica: 'first' | 'second') => (name: string) => {
    reconciled[replica].push(name);
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const until = async (predicate: () => boolean) => {
    while (!predicate()) await changed.promise;
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

  const first = await start(cluster.kubeconfig, options, recordIn('first'));
  await create('a');
  await until(() => reconciled.first.includes('a'));
  const second = await start(cluster.kubeconfig, options, recordIn('second'));
  await second.manager.caches.get(ConfigMap).waitForSync();
  expect(second.manager.ready).toBe(true);
  await create('b');
  await until(() => reconciled.first.includes('b'));
  expect(reconciled.second).toEqual([]);

  first.stop.abort();
  await first.running;
  await until(() => reconciled.second.includes('a') && reconciled.second.includes('b'));
  const before = reconciled.first.length;
  await create('c');
  await until(() => reconciled.second.includes('c'));
  expect(reconciled.first).toHaveLength(before);
});

test('writes of a replica that is no longer leader are rejected', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const access = await kubeconfigAccess({ world: nodeWorld, path: cluster.kubeconfig });
  const { logger } = collectingLogger();
  const manager = new Manager({
    world: nodeWorld,
    access,
    name: 'fenced',
    log: logger,
    namespaces: [namespace.name],
    election: { name: 'fenced', namespace: namespace.name, leaseMs: 15_000, renewMs: 10_000, retryMs: 300 },
  });
  const outcome = Promise.withResolvers<unknown>();
  const stop = new AbortController();
  manager.control({
    for: ConfigMap,
    reconcile: async (object, context) => {
      if (object.metadata.name !== 'late') return;
      stop.abort(); // leadership is released only after this reconcile, so the reconcile may still write
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

test('the status server serves health, readiness, and metrics with the names that controller-runtime uses', async ({
  cluster,
}) => {
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

test('run rejects with the names of the kinds that were not listed before the timeout', async ({
  cluster,
  namespace,
}) => {
  const kubeconfig = await cluster.kubeconfigFor({ namespace, name: 'default' });
  const { world, clock } = virtualWorld();
  const { running, lines } = await start(
    kubeconfig,
    { world, namespaces: [namespace], syncTimeoutMs: 300 },
    () => undefined,
  );
  await expect
    .poll(() => lines)
    .toContainEqual(expect.objectContaining({ msg: 'Watch failed, retrying', kind: 'configmaps' }));
  clock.advance(300);
  await expect(running).rejects.toThrow(
    'no complete list of configmaps after 0.3 s; see the log for the cause',
  );
});

test('a namespace in which objects cannot be listed is logged and does not block the other namespaces', async ({
  cluster,
  namespace: forbidden,
}) => {
  await using home = await cluster.namespace();
  const namespace = home.name;
  const role = ['-n', namespace, 'create', 'role', 'reader', '--verb=list,watch', '--resource=configmaps'];
  await cluster.kubectl(role);
  const subject = `--serviceaccount=${namespace}:default`;
  await cluster.kubectl(['-n', namespace, 'create', 'rolebinding', 'reader', '--role=reader', subject]);
  const permissions = ['list', 'watch'].map((verb) => ({ verb, resource: 'configmaps', namespace }));
  await waitForPermissions(cluster, { namespace, name: 'default' }, permissions);
  await cluster.kubectl(['-n', namespace, 'create', 'configmap', 'seen']);
  await cluster.kubectl(['-n', forbidden, 'create', 'configmap', 'unseen']);
  const reconciled = Promise.withResolvers<void>();
  const names: string[] = [];
  const { manager, lines } = await start(
    await cluster.kubeconfigFor({ namespace, name: 'default' }),
    { namespaces: [namespace, forbidden], status: { port: 0, host: '127.0.0.1' } },
    (name) => {
      names.push(name);
      if (name === 'seen') reconciled.resolve();
    },
  );
  await reconciled.promise;
  expect(manager.ready).toBe(true);
  const port = lines.find((line) => line.port !== undefined)?.port;
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  expect(await get('/readyz')).toBe('ok');
  expect(await get('/readyz?verbose')).toContain(`[+]caches ok: cannot list configmaps in ${forbidden}\n`);
  expect(lines.filter(({ msg }) => /cannot be listed|Watch failed/.test(String(msg)))).toMatchObject([
    { kind: 'configmaps', namespace: forbidden, error: expect.stringContaining('forbidden') },
  ]);
  expect(names).not.toContain('unseen');
});

test('leadership is not released while a reconcile is running', async ({ cluster }) => {
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
  const started = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  manager.control({
    for: ConfigMap,
    reconcile: async () => {
      started.resolve();
      await released.promise; // ignores the signal
    },
  });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  await started.promise;
  stop.abort();
  await expect(running).rejects.toThrow('a reconcile has not ended within 0.1 s');
  const lease = await client.get(Lease, { namespace: namespace.name, name: 'stubborn' });
  expect(lease.spec?.holderIdentity).toContain('_');
  released.resolve();
});

test('a job runs and writes only on the leader, and runs again after a failure', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const options = { namespaces: [namespace.name], election: { ...ELECTION, namespace: namespace.name } };
  const runs = { first: 0, second: 0 };
  let changed = Promise.withResolvers<void>();
  const until = async (predicate: () => boolean) => {
    while (!predicate()) await changed.promise;
  };
  const contexts: WorkContext[] = [];
  const cleanup = (replica: 'first' | 'second') => (manager: Manager) =>
    manager.job({
      name: 'cleanup',
      everyMs: 20,
      reads: [ConfigMap],
      run: async (context) => {
        runs[replica] += 1;
        contexts.push(context);
        changed.resolve();
        changed = Promise.withResolvers();
        if (runs[replica] === 1) throw new Error('connection refused');
        if (runs[replica] === 2) throw new BackendUnavailableError('cloud', 'no answer');
        const metadata = { namespace: namespace.name, name: 'cleaned' };
        await context.client.apply(ConfigMap, { metadata, data: { by: replica } });
        expect(context.cache(ConfigMap).get(metadata)?.data?.by).toBe(replica);
      },
    });
  const first = await start(cluster.kubeconfig, options, () => undefined, cleanup('first'));
  await until(() => runs.first >= 3);
  const second = await start(cluster.kubeconfig, options, () => undefined, cleanup('second'));
  await second.manager.caches.synced();
  await until(() => runs.first >= 6);
  expect(runs.second).toBe(0);
  expect(first.lines).toContainEqual(
    expect.objectContaining({
      msg: 'Job failed, retrying at the next interval',
      job: 'cleanup',
      error: 'connection refused',
    }),
  );
  expect(first.lines).toContainEqual(
    expect.objectContaining({ level: 'debug', msg: 'Job failed: backend unavailable', backend: 'cloud' }),
  );
  first.stop.abort();
  await first.running;
  const before = runs.first;
  await until(() => runs.second >= 4); // the first two runs fail, and the third one writes
  expect(runs.first).toBe(before);
  expect(() => contexts[0]?.assertLeader()).toThrow(NotLeadingError);
  expect((await client.get(ConfigMap, { namespace: namespace.name, name: 'cleaned' })).data).toEqual({
    by: 'second',
  });
});

test('invalid controllers and jobs are rejected when they are added', async ({ cluster, namespace }) => {
  const { manager } = await start(
    cluster.kubeconfig,
    { namespaces: [namespace] },
    () => undefined,
    (added) => {
      expect(() => added.control({ for: ConfigMap, reconcile: async () => undefined })).toThrow(
        'a controller, job or runnable named configmap already exists; set a different `name`',
      );
      expect(() =>
        added.control({ name: 'mine/yours', for: ConfigMap, reconcile: async () => undefined }),
      ).toThrow('manager-test/mine/yours is not a valid reporting controller for events');
      expect(() => added.caches.get(ConfigMap, { metadataOnly: true })).toThrow(
        'the cache of configmaps already exists; pass its options before you add the first controller that reads it',
      );
      expect(() => added.job({ name: 'idle', everyMs: 0, run: async () => undefined })).toThrow(
        'job idle: everyMs must be greater than 0, got 0',
      );
    },
  );
  expect(() => manager.control({ name: 'late', for: ConfigMap, reconcile: async () => undefined })).toThrow(
    'cannot add late: the manager is already running',
  );
});

test('if a reconcile does not end after leadership is lost, run rejects before another replica can act', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const { add, started } = stubborn();
  const election = { ...QUICK_ELECTION, namespace: namespace.name };
  const { running } = await start(
    cluster.kubeconfig,
    { namespaces: [namespace.name], election },
    () => undefined,
    add,
  );
  await started;
  await steal(client, namespace.name);
  // The grace period of 30 s is cut to the time until another replica can become leader.
  await expect(running).rejects.toThrow(/a reconcile has not ended within 0\.\d+ s of the stop request/);
  const lease = await client.get(Lease, { namespace: namespace.name, name: ELECTION.name });
  expect(lease.spec?.holderIdentity).toBe('another');
});

test('the Lease is renewed while slow requests occupy all other connections', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  await using slow = await slowCreates(client, namespace.name);
  const busy = new AbortController();
  onTestFinished(() => busy.abort());
  let ended = 0;
  const { leading } = await start(
    cluster.kubeconfig,
    { namespaces: [namespace.name], election: { ...ELECTION, namespace: namespace.name } },
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
              .catch(() => undefined)
              .finally(() => {
                ended += 1;
              }),
          );
          await Promise.all(creates);
        },
      }),
  );
  await slow.started;
  const lease = { namespace: namespace.name, name: ELECTION.name };
  const renewals = new Set<string | undefined>();
  const fieldSelector = `metadata.name=${lease.name}`;
  for await (const event of client.watch(Lease, {
    namespace: lease.namespace,
    fieldSelector,
    resourceVersion: '0',
  })) {
    if (event.type !== 'BOOKMARK') renewals.add(event.object.spec?.renewTime);
    if (renewals.size > 6) break;
  }
  expect(ended, 'creates that ended before the renewals').toBe(0);
  expect(leading()).toEqual([false, true]);
  busy.abort();
});

test('each distinct warning of the API server is logged once', async ({ cluster, namespace }) => {
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
  const warnings = lines.filter(({ msg }) => msg === 'API server warning (logged once)');
  expect(warnings).toEqual([expect.objectContaining({ level: 'warn', warning: 'unknown field "surplus"' })]);
});

/** Delays creates of ConfigMaps in a namespace by 30 s. The API server calls a webhook that never responds. */
async function slowCreates(client: Client, namespace: string) {
  const silent = createServer();
  const port = await listen(silent, onTestFinished);
  const started = new Promise((resolve) =>
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
        timeoutSeconds: 30,
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  });
  return {
    started,
    [Symbol.asyncDispose]: () => client.delete(ValidatingWebhookConfiguration, { name: namespace }),
  };
}

test('losing leadership during shutdown shortens the grace period', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const { add, started } = stubborn();
  const election = { ...QUICK_ELECTION, namespace: namespace.name };
  const { running, stop } = await start(
    cluster.kubeconfig,
    { namespaces: [namespace.name], election },
    () => undefined,
    add,
  );
  await started;
  stop.abort();
  await steal(client, namespace.name);
  await expect(running).rejects.toThrow('a reconcile has not ended within 0.5 s of the stop request');
});

test('a pending request is aborted when leadership is lost, and the replica becomes a standby again', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  await using slow = await slowCreates(client, namespace.name);
  const ended = Promise.withResolvers<unknown>();
  const election = { ...ELECTION, namespace: namespace.name };
  const { leading } = await start(
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
  await slow.started;
  await steal(client, namespace.name);
  expect(await ended.promise).toBeInstanceOf(LeadershipLostError);
  await expect.poll(leading).toEqual([false, true, false]);
  await steal(client, namespace.name, '');
  await expect.poll(leading).toEqual([false, true, false, true]);
});

test('a reconcile from an earlier term cannot write after the same process has become leader again', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const contexts: { readonly object: ConfigMap; readonly context: ReconcileContext<ConfigMap> }[] = [];
  const election = { ...ELECTION, namespace: namespace.name };
  const { leading } = await start(
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
  await expect.poll(leading).toEqual([false, true, false]);
  await steal(client, namespace.name, '');
  await expect.poll(() => contexts.length).toBe(2);
  const [first, second] = contexts;
  second?.context.assertLeader();
  expect(() => first?.context.assertLeader()).toThrow(NotLeadingError);
  expect(first?.context.fence.signal.reason).toBeInstanceOf(LeadershipLostError);
  await expect(first?.context.client.mergePatch(ConfigMap, ref, { data: { by: 'first' } })).rejects.toThrow();
  if (first !== undefined)
    first.context.event(first.object, { type: 'Normal', reason: 'Late', note: 'from the previous term' });
  await second?.context.client.mergePatch(ConfigMap, ref, { data: { by: 'second' } });
  if (second !== undefined)
    second.context.event(second.object, { type: 'Normal', reason: 'Now', note: 'from the current term' });
  const reasons = async () =>
    (await client.list(Event, { namespace: namespace.name })).items.map(({ reason }) => reason);
  await expect.poll(reasons).toContain('Now');
  expect(await reasons()).not.toContain('Late');
  expect((await client.get(ConfigMap, ref)).data).toEqual({ by: 'second' });
});
