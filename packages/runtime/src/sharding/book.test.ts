import { expect, test } from 'vitest';
import { type Changed, LeaseTable } from '../../test/sharding-model.ts';
import { VirtualClock } from '../../test/virtual-clock.ts';
import { LeaseStore, type ShardingClient } from './lease-store.ts';

function open() {
  const server = new LeaseTable();
  const client: ShardingClient = {
    get: async (_kind, { name }) => server.get(name),
    create: async (_kind, { metadata, spec }) => server.create(metadata.name, metadata, spec),
    mergePatch: async (_kind, { name }, patch) => {
      const { metadata = {}, spec }: Changed = patch;
      return server.patch(name, metadata, spec);
    },
    list: async () => ({ items: server.list(), resourceVersion: '', continue: undefined }),
    delete: async (_kind, { name }, { uid, resourceVersion }) => server.delete(name, uid, resourceVersion),
  };
  const book = new LeaseStore({
    clock: new VirtualClock(),
    client,
    namespace: 'test',
    name: 'x',
    callMs: 5_000,
  });
  return { server, book };
}

const OWNERS = ['x-a', undefined, 'x-b'];

test('a ledger is blank first, and then what was written', async () => {
  const { book } = open();
  expect((await book.look()).ledger).toBe('absent');
  expect(await book.write(undefined, 'blank')).toBe(true);
  const blank = await book.look();
  expect(blank.ledger).toBe('blank');
  expect(await book.write(blank.lease, OWNERS)).toBe(true);
  expect((await book.look()).ledger).toEqual(OWNERS);
});

test('of two who have seen the same, one writes', async () => {
  const { book } = open();
  expect([await book.write(undefined, 'blank'), await book.write(undefined, 'blank')]).toEqual([true, false]);
  const { lease } = await book.look();
  expect([await book.write(lease, OWNERS), await book.write(lease, [])]).toEqual([true, false]);
  expect((await book.look()).ledger).toEqual(OWNERS);
});

test('to write the same again makes a new version, so that a late write of before fails', async () => {
  const { book } = open();
  await book.write(undefined, 'blank');
  await book.write((await book.look()).lease, OWNERS);
  const { lease: seen } = await book.look();
  expect(await book.write(seen, OWNERS)).toBe(true); // by a clock that stands still
  expect(await book.write(seen, [])).toBe(false);
  expect((await book.look()).ledger).toEqual(OWNERS);
});

test('a lease that has changed since is not removed', async () => {
  const { server, book } = open();
  const dead = server.create('x-dead', { labels: book.labels }, { holderIdentity: 'dead' });
  server.patch('x-dead', {}, { holderIdentity: 'back' });
  await book.remove(dead);
  expect([...(await book.look()).members.keys()]).toEqual(['x-dead']);
  await book.remove(server.get('x-dead'));
  expect([...(await book.look()).members.keys()]).toEqual([]);
});
