import { test } from '@vmwright/testbed/vitest';
import { afterEach, expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { OutputLog, overlaps, ReplicaProcess } from '../../test/sharding-process.ts';
import { Lease } from '../kind/builtin/lease.ts';
import { foreignKind } from '../kind/kind.ts';
import { keyOf } from '../kind/object.ts';
import { LABEL } from './lease-store.ts';

const Namespace = foreignKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  scope: 'Cluster',
});

const OBJECTS = 30;
/** leaseMs/renewMs/retryMs, as short as a busy machine allows. `SHARDING_TIMES=15000/10000/2000` measures the defaults. */
const TIMES = process.env.SHARDING_TIMES ?? '6000/4000/300';

const started: ReplicaProcess[] = [];

afterEach(async () => {
  for (const replica of started.splice(0)) {
    replica.signal('SIGKILL');
    await replica.exited();
  }
});

test('`overlaps` finds two processes that reconcile one object at the same time', () => {
  const write = (at: bigint, name: string, reconcile: string) => ({ at, name, key: 'n/object', reconcile });
  const first = [write(1n, 'a', '1'), write(5n, 'a', '1')];
  expect(overlaps([...first, write(6n, 'b', '1'), write(7n, 'b', '1')])).toEqual([]);
  expect(overlaps([...first, write(3n, 'b', '1'), write(7n, 'b', '1')])).toHaveLength(1);
});

test('processes that join, stop, are killed or suspended never reconcile one object at the same time', async ({
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const run = namespace;
  const labels = { 'sharding-test': run };
  const refs = Array.from({ length: OBJECTS }, (_, at) => ({ namespace: `${run}-${at}`, name: 'shared' }));
  const keys = refs.map((ref) => keyOf(ref));
  const output = new OutputLog();
  const start = (name: string) => {
    const { kubeconfig } = cluster;
    const replica = new ReplicaProcess({ kubeconfig, namespace, run, name, times: TIMES }, output);
    started.push(replica);
    return replica;
  };
  /** Waits until these replicas have together written every object since this time, and each replica at least one. */
  const sharedBy = async (names: readonly string[], since: bigint) => {
    await output.until(() => {
      const later = output.writes.filter(({ at, name }) => at > since && names.includes(name));
      return (
        new Set(later.map(({ key }) => key)).size === OBJECTS &&
        names.every((name) => later.some((write) => write.name === name))
      );
    });
  };
  const now = () => process.hrtime.bigint();
  const figures: string[] = [];
  /** Replica that has last written each object. */
  const owners = (before = now()) =>
    new Map(output.writes.filter(({ at }) => at < before).map(({ key, name }) => [key, name]));
  const recordTakeover = (event: string, name: string, since: bigint) => {
    const theirs = [...owners(since)].filter(([, owner]) => owner === name).map(([key]) => key);
    const waits = theirs.map((key) => {
      const first = output.writes.find(
        (write) => write.key === key && write.name !== name && write.at > since,
      );
      return Number((first?.at ?? since) - since) / 1e9;
    });
    waits.sort((a, b) => a - b);
    const at = (quantile: number) => waits[Math.floor(quantile * (waits.length - 1))]?.toFixed(2);
    figures.push(
      `${event}: ${waits.length} objects taken over after ${at(0)} to ${at(1)} s, median ${at(0.5)}`,
    );
  };

  for (const ref of refs) {
    await client.create(Namespace, { metadata: { name: ref.namespace } });
    await client.create(ConfigMap, { metadata: { ...ref, labels }, data: { want: '1' } });
  }
  const startedAt = now();
  const [a, b, c] = [start('a'), start('b'), start('c')];
  await sharedBy(['a', 'b', 'c'], startedAt);
  const first = new Map(output.writes.toReversed().map(({ key, at }) => [key, Number(at - startedAt) / 1e9]));
  figures.push(`start of three: all objects reconciled after ${Math.max(...first.values()).toFixed(2)} s`);

  // A replica joins: objects move only to it.
  await output.until(() => [...output.ownership.values()].every(([, , members]) => members === 3));
  await sharedBy(['a', 'b', 'c'], now());
  const before = owners();
  const joinedAt = now();
  const d = start('d');
  await output.until(() => {
    const ownership = [...output.ownership.values()];
    return (
      ownership.length === 4 &&
      ownership.every(([, , members]) => members === 4) &&
      ownership.reduce((sum, [owned = 0]) => sum + owned, 0) === 256
    );
  });
  const balancedAt = now();
  await sharedBy(['a', 'b', 'c', 'd'], balancedAt);
  const moved = [...owners()].filter(([key, name]) => name !== before.get(key));
  expect(new Set(moved.map(([, name]) => name))).toEqual(new Set(['d']));
  figures.push(
    `join of a fourth: ${moved.length} of ${OBJECTS} objects moved, balanced after ${(Number(balancedAt - joinedAt) / 1e9).toFixed(2)} s; shards ${[...output.ownership].map(([name, [owned]]) => `${name} ${owned}`).join(', ')}`,
  );

  // A replica stops.
  const stopped = a.signal('SIGTERM');
  expect(await a.exited()).toBe(0);
  await sharedBy(['b', 'c', 'd'], now());
  recordTakeover('clean stop', 'a', stopped);

  // A replica is killed.
  const killed = b.signal('SIGKILL');
  await sharedBy(['c', 'd'], killed);
  recordTakeover('kill', 'b', killed);

  // A replica is suspended and resumes.
  const paused = c.signal('SIGSTOP');
  await sharedBy(['d'], paused);
  recordTakeover('pause', 'c', paused);
  const resumed = c.signal('SIGCONT');
  await sharedBy(['c', 'd'], resumed);

  // When idle, only renewals are written.
  const leases = async () => {
    const { items } = await client.list(Lease, { namespace, labelSelector: `${LABEL}=${run}` });
    return items;
  };
  await output.until(() => ['c', 'd'].every((name) => output.ownership.get(name)?.[2] === 2));
  await sharedBy(['c', 'd'], now());
  const idleLeases = await leases();
  const shardMap = idleLeases.find(({ metadata }) => metadata.name.endsWith('-shards'));
  const idleFrom = now();
  const renewals = new Map<string, number>();
  const others: string[] = [];
  const watched = client.watch(Lease, {
    namespace,
    labelSelector: `${LABEL}=${run}`,
    resourceVersion: idleLeases.reduce(
      (newest, { metadata }) =>
        Number(metadata.resourceVersion) > Number(newest) ? (metadata.resourceVersion ?? '') : newest,
      '',
    ),
  });
  for await (const event of watched) {
    if (event.type === 'BOOKMARK') continue;
    const { name } = event.object.metadata;
    if (event.type === 'MODIFIED' && name !== shardMap?.metadata.name)
      renewals.set(name, (renewals.get(name) ?? 0) + 1);
    else others.push(`${event.type} ${name}`);
    if (renewals.size === 2 && [...renewals.values()].every((count) => count >= 8)) break;
  }
  expect(others).toEqual([]);
  const idleSeconds = Number(now() - idleFrom) / 1e9;
  const total = [...renewals.values()].reduce((sum, count) => sum + count, 0);
  figures.push(
    `idle: ${(total / idleSeconds / renewals.size).toFixed(2)} writes per second and member, only renewals (times ${TIMES})`,
  );

  // Every object is reconciled after a change.
  for (const ref of refs) await client.mergePatch(ConfigMap, ref, { data: { want: '2' } });
  const reconciledCount = async () => {
    const { items } = await client.list(ConfigMap, { labelSelector: `sharding-test=${run}` });
    return items.filter(({ data }) => data?.seen === '2').length;
  };
  await expect.poll(reconciledCount, { timeout: 60_000 }).toBe(OBJECTS);

  for (const replica of [c, d]) {
    replica.signal('SIGTERM');
    expect(await replica.exited()).toBe(0);
  }
  expect(overlaps(output.writes)).toEqual([]);
  // The Leases of the stopped replicas are deleted, except those of the last two, which the shard map still names.
  const left = await leases();
  expect(left.map(({ spec }) => spec?.holderIdentity ?? '')).toEqual(['', '', '']);
  console.log([`${output.writes.length} writes`, ...figures].join('\n'));
  for (const { namespace: name } of refs) await client.delete(Namespace, { name });
  expect(keys).toHaveLength(new Set(keys).size);
}, 300_000);
