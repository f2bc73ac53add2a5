import { expect, test } from 'vitest';
import { SeededRandom, Timeline } from '../../test/election-model.ts';
import { LeaseTable, NAMESPACES, Replica, SHARDS } from '../../test/sharding-model.ts';
import { shardOf } from './assignment.ts';

const KEYS = NAMESPACES.map((namespace) => `${namespace}/object`);
const ALL = Array.from({ length: SHARDS }, (_, shard) => shard);

function start(...configured: readonly number[]) {
  const timeline = new Timeline();
  const server = new LeaseTable();
  const random = new SeededRandom(1);
  const replicas = configured.map(
    (shards, at) =>
      new Replica({ name: `r${at}`, timeline, server, random, speed: 1, wallOffsetMs: 0, shards }),
  );
  const heldBy = (replica: Replica | undefined) => [...(replica?.sharding?.held ?? [])].sort();
  /** Checks that no two replicas hold the same shard, and that each replica owns only keys in shards that it holds. */
  const check = () => {
    const held = replicas.flatMap(heldBy);
    expect(new Set(held).size).toBe(held.length);
    for (const { sharding } of replicas) {
      if (sharding === undefined || sharding.held.size === 0) continue;
      for (const key of KEYS) {
        if (sharding.owns(key)) expect(sharding.held).toContain(sharding.shardOf(key));
        expect(sharding.held.has(sharding.shardOf(key))).toBe(sharding.holds(key));
      }
    }
  };
  const run = (ms: number) => timeline.run(timeline.now + ms, check);
  return { replicas, heldBy, run };
}

test('a single replica holds no shard before it is a member, and all shards afterwards', async () => {
  const { replicas, heldBy, run } = start(SHARDS);
  const [only] = replicas;
  only?.start();
  expect(heldBy(only)).toEqual([]);
  await run(60_000);
  expect(heldBy(only)).toEqual(ALL);
});

test('shards move to a replica that joins, and back when it stops', async () => {
  const { replicas, heldBy, run } = start(SHARDS, SHARDS);
  const [first, second] = replicas;
  first?.start();
  await run(60_000);
  second?.start();
  await run(120_000);
  expect(heldBy(second).length).toBeGreaterThan(0);
  expect([...heldBy(first), ...heldBy(second)].sort()).toEqual(ALL);
  const before = second?.sharding?.held;
  second?.stop();
  await run(60_000);
  expect(heldBy(first)).toEqual(ALL);
  expect(before?.size).toBeGreaterThan(0); // `held` is a copy, so the stop has not emptied it
});

test('replicas configured with different numbers of shards agree on the shard of a key', async () => {
  const { replicas, run } = start(SHARDS, 4);
  for (const replica of replicas) {
    replica.start();
    await run(60_000);
  }
  await run(60_000);
  for (const [at, key] of KEYS.entries()) {
    const shards = replicas.map(({ sharding }) => sharding?.shardOf(key));
    expect(shards).toEqual([shardOf(NAMESPACES[at] ?? '', SHARDS), shardOf(NAMESPACES[at] ?? '', SHARDS)]);
  }
});

test('`held` of a replica is empty after the replica has lost its membership', async () => {
  const { replicas, heldBy, run } = start(SHARDS);
  const [only] = replicas;
  only?.start();
  await run(60_000);
  if (only !== undefined) only.host.network = 'down';
  await run(30_000);
  expect(heldBy(only)).toEqual([]);
  expect(only?.sharding?.isMember()).toBe(false);
});
