import { test } from '@vmwright/testbed/vitest';
import { afterEach, expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { overlaps, Protocol, ReplicaProcess } from '../../test/sharding-process.ts';
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
/** With time for a busy machine to be late in, and no longer. `SHARDING_TIMES=15000/10000/2000` for the figures of the defaults. */
const TIMES = process.env.SHARDING_TIMES ?? '6000/4000/300';

const started: ReplicaProcess[] = [];

afterEach(async () => {
  for (const replica of started.splice(0)) {
    replica.signal('SIGKILL');
    await replica.ends();
  }
});

test('the auditor sees it when two act on one object at a time', () => {
  const act = (at: bigint, name: string, reconcile: string) => ({ at, name, key: 'n/object', reconcile });
  const first = [act(1n, 'a', '1'), act(5n, 'a', '1')];
  expect(overlaps([...first, act(6n, 'b', '1'), act(7n, 'b', '1')])).toEqual([]);
  expect(overlaps([...first, act(3n, 'b', '1'), act(7n, 'b', '1')])).toHaveLength(1);
});

test('processes that join, stop, are killed and are stopped for a while never act on one object at a time', async ({
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const run = namespace;
  const labels = { 'sharding-test': run };
  const refs = Array.from({ length: OBJECTS }, (_, at) => ({ namespace: `${run}-${at}`, name: 'shared' }));
  const keys = refs.map((ref) => keyOf(ref));
  const protocol = new Protocol();
  const start = (name: string) => {
    const { kubeconfig } = cluster;
    const replica = new ReplicaProcess({ kubeconfig, namespace, run, name, times: TIMES }, protocol);
    started.push(replica);
    return replica;
  };
  /** All objects were acted on after this moment, by these alone, and by each of them. */
  const sharedBy = async (names: readonly string[], since: bigint) => {
    await protocol.until(() => {
      const later = protocol.acts.filter(({ at, name }) => at > since && names.includes(name));
      return (
        new Set(later.map(({ key }) => key)).size === OBJECTS &&
        names.every((name) => later.some((act) => act.name === name))
      );
    });
  };
  const now = () => process.hrtime.bigint();
  const figures: string[] = [];
  /** Who has acted last on each object. */
  const owners = (before = now()) =>
    new Map(protocol.acts.filter(({ at }) => at < before).map(({ key, name }) => [key, name]));
  const takeOver = (what: string, name: string, since: bigint) => {
    const theirs = [...owners(since)].filter(([, owner]) => owner === name).map(([key]) => key);
    const waits = theirs.map((key) => {
      const first = protocol.acts.find((act) => act.key === key && act.name !== name && act.at > since);
      return Number((first?.at ?? since) - since) / 1e9;
    });
    waits.sort((a, b) => a - b);
    const at = (share: number) => waits[Math.floor(share * (waits.length - 1))]?.toFixed(2);
    figures.push(
      `${what}: ${waits.length} objects taken over after ${at(0)} to ${at(1)} s, median ${at(0.5)}`,
    );
  };

  for (const ref of refs) {
    await client.create(Namespace, { metadata: { name: ref.namespace } });
    await client.create(ConfigMap, { metadata: { ...ref, labels }, data: { want: '1' } });
  }
  const began = now();
  const [a, b, c] = [start('a'), start('b'), start('c')];
  await sharedBy(['a', 'b', 'c'], began);
  const first = new Map(protocol.acts.toReversed().map(({ key, at }) => [key, Number(at - began) / 1e9]));
  figures.push(`start of three: all objects reconciled after ${Math.max(...first.values()).toFixed(2)} s`);

  // One joins: what moves goes to it, and nothing else moves.
  await protocol.until(() => [...protocol.shares.values()].every(([, , members]) => members === 3));
  await sharedBy(['a', 'b', 'c'], now());
  const before = owners();
  const joins = now();
  const d = start('d');
  await protocol.until(() => {
    const shares = [...protocol.shares.values()];
    return (
      shares.length === 4 &&
      shares.every(([, , members]) => members === 4) &&
      shares.reduce((sum, [owned = 0]) => sum + owned, 0) === 256
    );
  });
  const joined = now();
  await sharedBy(['a', 'b', 'c', 'd'], joined);
  const moved = [...owners()].filter(([key, name]) => name !== before.get(key));
  expect(new Set(moved.map(([, name]) => name))).toEqual(new Set(['d']));
  figures.push(
    `join of a fourth: ${moved.length} of ${OBJECTS} objects moved, balanced after ${(Number(joined - joins) / 1e9).toFixed(2)} s; shards ${[...protocol.shares].map(([name, [owned]]) => `${name} ${owned}`).join(', ')}`,
  );

  // One is asked to stop.
  const asked = a.signal('SIGTERM');
  expect(await a.ends()).toBe(0);
  await sharedBy(['b', 'c', 'd'], now());
  takeOver('clean stop', 'a', asked);

  // One is killed.
  const killed = b.signal('SIGKILL');
  await sharedBy(['c', 'd'], killed);
  takeOver('kill', 'b', killed);

  // One does nothing for a while, and goes on.
  const paused = c.signal('SIGSTOP');
  await sharedBy(['d'], paused);
  takeOver('pause', 'c', paused);
  const goesOn = c.signal('SIGCONT');
  await sharedBy(['c', 'd'], goesOn);

  // At rest nothing but renewals is written.
  const versions = async () => {
    const { items } = await client.list(Lease, { namespace, labelSelector: `${LABEL}=${run}` });
    return items;
  };
  await protocol.until(() => ['c', 'd'].every((name) => protocol.shares.get(name)?.[2] === 2));
  await sharedBy(['c', 'd'], now());
  const resting = await versions();
  const ledger = resting.find(({ metadata }) => metadata.name.endsWith('-shards'));
  const restedFrom = now();
  const renewals = new Map<string, number>();
  const others: string[] = [];
  const watched = client.watch(Lease, {
    namespace,
    labelSelector: `${LABEL}=${run}`,
    resourceVersion: resting.reduce(
      (most, { metadata }) =>
        Number(metadata.resourceVersion) > Number(most) ? (metadata.resourceVersion ?? '') : most,
      '',
    ),
  });
  for await (const event of watched) {
    if (event.type === 'BOOKMARK') continue;
    const { name } = event.object.metadata;
    if (event.type === 'MODIFIED' && name !== ledger?.metadata.name)
      renewals.set(name, (renewals.get(name) ?? 0) + 1);
    else others.push(`${event.type} ${name}`);
    if (renewals.size === 2 && [...renewals.values()].every((count) => count >= 8)) break;
  }
  expect(others).toEqual([]);
  const rested = Number(now() - restedFrom) / 1e9;
  const total = [...renewals.values()].reduce((sum, count) => sum + count, 0);
  figures.push(
    `at rest: ${(total / rested / renewals.size).toFixed(2)} writes a second and member, renewals alone (times ${TIMES})`,
  );

  // Every object gets to know what is wanted now.
  for (const ref of refs) await client.mergePatch(ConfigMap, ref, { data: { want: '2' } });
  const caughtUp = async () => {
    const { items } = await client.list(ConfigMap, { labelSelector: `sharding-test=${run}` });
    return items.filter(({ data }) => data?.seen === '2').length;
  };
  await expect.poll(caughtUp, { timeout: 60_000 }).toBe(OBJECTS);

  for (const replica of [c, d]) {
    replica.signal('SIGTERM');
    expect(await replica.ends()).toBe(0);
  }
  expect(overlaps(protocol.acts)).toEqual([]);
  // The leases of the dead are gone; those of the last two are empty, and named in the ledger.
  const left = await versions();
  expect(left.map(({ spec }) => spec?.holderIdentity ?? '')).toEqual(['', '', '']);
  console.log([`${protocol.acts.length} acts`, ...figures].join('\n'));
  for (const { namespace: name } of refs) await client.delete(Namespace, { name });
  expect(keys).toHaveLength(new Set(keys).size);
}, 300_000);
