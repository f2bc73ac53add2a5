import { VirtualClock } from '@vmwright/core/testing';
import { expect, test } from 'vitest';
import { type LeasePatch, LeaseTable } from '../../test/sharding-model.ts';
import { LeaseStore, type ShardingClient } from './lease-store.ts';

function start() {
  const server = new LeaseTable();
  const client: ShardingClient = {
    get: async (_kind, { name }) => server.get(name),
    create: async (_kind, { metadata, spec }) => server.create(metadata.name, metadata, spec),
    mergePatch: async (_kind, { name }, patch) => {
      const { metadata = {}, spec }: LeasePatch = patch;
      return server.patch(name, metadata, spec);
    },
    list: async () => ({ items: server.list(), resourceVersion: '', continue: undefined }),
    delete: async (_kind, { name }, { uid, resourceVersion }) => server.delete(name, uid, resourceVersion),
  };
  const store = new LeaseStore({
    clock: new VirtualClock(),
    client,
    namespace: 'test',
    name: 'x',
    callMs: 5_000,
  });
  return { server, store };
}

const OWNERS = ['x-a', undefined, 'x-b'];

test('the shard map is absent before the first write; afterwards, read returns what was written last, either a blank map or the owners of the shards', async () => {
  const { store } = start();
  expect((await store.read()).shardMap).toBe('absent');
  expect(await store.write(undefined, 'blank')).toBe(true);
  const blank = await store.read();
  expect(blank.shardMap).toBe('blank');
  expect(await store.write(blank.lease, OWNERS)).toBe(true);
  expect((await store.read()).shardMap).toEqual(OWNERS);
});

test('of two writes based on the same version of the shard map, only the first succeeds', async () => {
  const { store } = start();
  expect([await store.write(undefined, 'blank'), await store.write(undefined, 'blank')]).toEqual([
    true,
    false,
  ]);
  const { lease } = await store.read();
  expect([await store.write(lease, OWNERS), await store.write(lease, [])]).toEqual([true, false]);
  expect((await store.read()).shardMap).toEqual(OWNERS);
});

test('writing the same owners again creates a new version, so that a delayed earlier write fails', async () => {
  const { store } = start();
  await store.write(undefined, 'blank');
  await store.write((await store.read()).lease, OWNERS);
  const { lease: seen } = await store.read();
  expect(await store.write(seen, OWNERS)).toBe(true); // the version changes although the clock has not advanced
  expect(await store.write(seen, [])).toBe(false);
  expect((await store.read()).shardMap).toEqual(OWNERS);
});

test('a Lease that has changed since it was read is not deleted', async () => {
  const { server, store } = start();
  const dead = server.create('x-dead', { labels: store.labels }, { holderIdentity: 'dead' });
  server.patch('x-dead', {}, { holderIdentity: 'back' });
  await store.remove(dead);
  expect([...(await store.read()).members.keys()]).toEqual(['x-dead']);
  await store.remove(server.get('x-dead'));
  expect([...(await store.read()).members.keys()]).toEqual([]);
});
