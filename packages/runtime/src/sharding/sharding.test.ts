import { collectingLogger, nodeWorld } from '@vmwright/core';
import type { Cluster } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { waitForPermissions } from '../../test/permissions.ts';
import { kubeconfigAccess } from '../access/kubeconfig.ts';
import type { ReconcileContext } from '../controller/context.ts';
import { foreignKind } from '../kind/kind.ts';
import { keyOf } from '../kind/object.ts';
import { Manager } from '../manager/manager.ts';
import { NotOwningError, ShardLeavingError } from './errors.ts';

const core = { group: '', version: 'v1', scope: 'Cluster' } as const;
const Namespace = foreignKind({ ...core, kind: 'Namespace', plural: 'namespaces' });
const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const;
const Role = foreignKind({ ...rbac, kind: 'Role', plural: 'roles', scope: 'Namespaced' });
const RoleBinding = foreignKind({
  ...rbac,
  kind: 'RoleBinding',
  plural: 'rolebindings',
  scope: 'Namespaced',
});

const NAMESPACES = 12;

/** Creates a service account with the minimal permissions of a sharded manager, and returns its kubeconfig. */
async function restrictedKubeconfig(
  cluster: Cluster,
  namespace: string,
  namespaces: readonly string[],
): Promise<string> {
  await using client = await connect(cluster.kubeconfig);
  const leases = {
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    verbs: ['get', 'list', 'create', 'patch', 'delete'],
  };
  const configMaps = { apiGroups: [''], resources: ['configmaps'], verbs: ['list', 'watch', 'patch'] };
  const subjects = [{ kind: 'ServiceAccount', name: 'default', namespace }];
  const roleRef = { apiGroup: rbac.group, kind: 'Role', name: 'shared' };
  for (const [each, rules] of [
    [namespace, [leases]] as const,
    ...namespaces.map((name) => [name, [configMaps]] as const),
  ]) {
    const role = { metadata: { namespace: each, name: 'shared' }, rules };
    const binding = { metadata: { namespace: each, name: 'shared' }, subjects, roleRef };
    await client.create(Role, role);
    await client.create(RoleBinding, binding);
    const permissions = rules.flatMap(({ apiGroups, resources, verbs }) =>
      verbs.map((verb) => ({ verb, group: apiGroups.join(), resource: resources.join(), namespace: each })),
    );
    await waitForPermissions(cluster, { namespace, name: 'default' }, permissions);
  }
  return cluster.kubeconfigFor({ namespace, name: 'default' });
}

test('a replica that joins gets a namespace only after the previous owner has ended its reconciles in that namespace', async ({
  cluster,
  namespace,
}) => {
  await using user = await connect(cluster.kubeconfig);
  const namespaces = Array.from({ length: NAMESPACES }, (_, at) => `${namespace}-${at}`);
  const keys = namespaces.map((each) => keyOf({ namespace: each, name: 'shared' })).sort();
  for (const name of namespaces) {
    await user.create(Namespace, { metadata: { name } });
    await user.create(ConfigMap, { metadata: { namespace: name, name: 'shared' } });
  }
  const kubeconfig = await restrictedKubeconfig(cluster, namespace, namespaces);

  let changed = Promise.withResolvers<void>();
  const change = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const until = async (predicate: () => boolean) => {
    while (!predicate()) await changed.promise;
  };
  const start = async (
    name: string,
    reconcile: (key: string, context: ReconcileContext<ConfigMap>) => Promise<void>,
  ) => {
    const { logger, lines } = collectingLogger();
    const manager = new Manager({
      world: nodeWorld,
      access: await kubeconfigAccess({ world: nodeWorld, path: kubeconfig }),
      name,
      log: logger,
      namespaces,
      sharding: { name: 'shared', namespace, identity: name, leaseMs: 15_000, renewMs: 10_000, retryMs: 200 },
    });
    manager.control({
      for: ConfigMap,
      concurrency: NAMESPACES,
      reconcile: async ({ metadata }, context) => {
        if (metadata.name === 'shared') await reconcile(context.key, context);
      },
    });
    const stop = new AbortController();
    const running = manager.run(stop.signal);
    onTestFinished(async () => {
      stop.abort();
      await running.catch(() => undefined);
    });
    return { manager, lines, stop, running };
  };

  // The first replica owns all namespaces and has a running reconcile in each.
  const contexts = new Map<string, ReconcileContext<ConfigMap>>();
  const aborted = new Map<string, unknown>();
  const gate = Promise.withResolvers<void>();
  const first = await start('first', async (key, context) => {
    contexts.set(key, context);
    context.signal.addEventListener('abort', () => {
      aborted.set(key, context.signal.reason);
      change();
    });
    change();
    await gate.promise;
  });
  await until(() => contexts.size === NAMESPACES);

  // The second replica should get some of the namespaces.
  const reconciled: string[] = [];
  const second = await start('second', async (key) => {
    reconciled.push(key);
    change();
  });
  await until(() => aborted.size > 0);
  const moving = [...aborted.keys()];
  for (const reason of aborted.values()) expect(reason).toBeInstanceOf(ShardLeavingError);
  for (const key of moving) {
    // A reconcile that is ending may still write.
    const [each = ''] = key.split('/');
    await contexts
      .get(key)
      ?.client.mergePatch(ConfigMap, { namespace: each, name: 'shared' }, { data: { by: 'first' } });
  }
  expect(reconciled).toEqual([]);
  gate.resolve();
  await until(() => moving.every((key) => reconciled.includes(key)));
  expect(reconciled.filter((key) => !aborted.has(key))).toEqual([]);
  for (const key of moving) {
    const [each = ''] = key.split('/');
    const late = contexts
      .get(key)
      ?.client.mergePatch(ConfigMap, { namespace: each, name: 'shared' }, { data: {} });
    await expect(late).rejects.toBeInstanceOf(NotOwningError);
  }
  expect(second.manager.registry.text()).toMatch(/^sharding_members\{name="shared"\} 2$/m);

  // When the first replica stops, the second replica gets the remaining namespaces.
  first.stop.abort();
  await first.running;
  await until(() => new Set(reconciled).size === NAMESPACES);
  expect([...new Set(reconciled)].sort()).toEqual(keys);
  const forbidden = [...first.lines, ...second.lines].filter(({ error }) =>
    String(error).includes('forbidden'),
  );
  expect(forbidden).toEqual([]);
  for (const name of namespaces) await user.delete(Namespace, { name });
});
