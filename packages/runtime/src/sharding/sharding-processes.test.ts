import { test } from '@vmwright/testbed/vitest';
import { afterEach, expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { OutputLog, overlaps, ReplicaProcess } from '../../test/sharding-process.ts';
import { Lease } from '../kind/builtin/lease.ts';
import { foreignKind } from '../kind/kind.ts';
import { keyOf } from '../kind/object.ts';
import { assign } from './assignment.ts';
import { LABEL } from './lease-store.ts';
import { shardMapOf } from './shard-map.ts';

const Namespace = foreignKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  scope: 'Cluster',
});

const OBJECTS = 30;
/**
 * Timings of the replicas, as `leaseMs/renewMs/retryMs`. They are long enough that a replica remains a member if the
 * replica or the API server is paused for a few seconds. To measure the default timings, set
 * `SHARDING_TIMES=15000/10000/2000`.
 */
const TIMES = process.env.SHARDING_TIMES ?? '12000/8000/300';
const SHARDS = 256;

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

test('two processes never reconcile one object at the same time, even if processes join, stop, are killed or are suspended', async ({
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
  /** Waits until each of these replicas has written since this time, and together they have written every object. */
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
  /** Returns the last writer of each object. Sorts by time, because lines of several processes arrive in any order. */
  const owners = (before = now()) =>
    new Map(
      output.writes
        .filter(({ at }) => at < before)
        .sort((a, b) => Number(a.at - b.at))
        .map(({ key, name }) => [key, name]),
    );
  const leases = async () => {
    const { items } = await client.list(Lease, { namespace, labelSelector: `${LABEL}=${run}` });
    return items;
  };
  const isShardMap = ({ metadata }: Lease) => metadata.name.endsWith('-shards');
  /**
   * Waits until these replicas are the only members and each owns the shards that it should own. From then on, no shard
   * moves, and members write renewals only. Returns the Leases of that moment.
   */
  const settled = async (names: readonly string[]) => {
    let found: readonly Lease[] = [];
    await expect
      .poll(async () => {
        found = await leases();
        const members = found.filter((lease) => !isShardMap(lease));
        const holders = members.map(({ spec }) => spec?.holderIdentity?.replace(/_.*/, '') ?? '');
        const desired = assign(
          SHARDS,
          members.map(({ metadata }) => metadata.name),
        );
        const isAssigned = JSON.stringify(shardMapOf(found.find(isShardMap))) === JSON.stringify(desired);
        return [holders.sort(), isAssigned];
      })
      .toEqual([[...names].sort(), true]);
    return found;
  };
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
  await settled(['a', 'b', 'c']);
  await sharedBy(['a', 'b', 'c'], now());
  const before = owners();
  const joinedAt = now();
  const d = start('d');
  await settled(['a', 'b', 'c', 'd']);
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
  const idleLeases = await settled(['c', 'd']);
  const shardMap = idleLeases.find(isShardMap);
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
  await expect.poll(reconciledCount).toBe(OBJECTS);

  c.signal('SIGTERM');
  expect(await c.exited()).toBe(0);
  await settled(['d']);
  d.signal('SIGTERM');
  expect(await d.exited()).toBe(0);
  expect(overlaps(output.writes)).toEqual([]);
  // The Leases of the stopped replicas are deleted. Only that of the last replica is left, because the shard map still
  // names this replica.
  const left = await leases();
  expect(left.map(({ spec }) => spec?.holderIdentity ?? '')).toEqual(['', '']);
  console.log([`${output.writes.length} writes`, ...figures].join('\n'));
  for (const { namespace: name } of refs) await client.delete(Namespace, { name });
  expect(keys).toHaveLength(new Set(keys).size);
}, 300_000);
