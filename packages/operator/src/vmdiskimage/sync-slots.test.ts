import { apiError } from '@vmwright/runtime';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EntryStore } from '../ledger/entry-store.ts';
import { EntryServer } from '../ledger/testing.ts';
import type { VMDiskImage } from './resource.ts';
import { type QueuedImage, SyncQueue } from './sync-queue.ts';
import { grant, SyncSlots } from './sync-slots.ts';

const queuedImage = (uid: string, queuedAt = uid): QueuedImage => ({
  uid,
  key: `farm/${uid}`,
  phase: 'Queued',
  queuedAt,
});

test('free slots go to the first images in the queue that hold no slot', () => {
  const queue = ['a', 'b', 'c', 'd'].map((uid) => queuedImage(uid));
  const granted = (holders: readonly string[], limit: number) =>
    grant(new Set(holders), queue, limit).map(({ uid }) => uid);
  expect(granted([], 2)).toEqual(['a', 'b']);
  expect(granted(['a'], 2)).toEqual(['b']);
  expect(granted(['x', 'y'], 2)).toEqual([]);
  expect(granted(['x', 'y', 'z'], 2), 'the limit was lowered').toEqual([]);
});

describe('the queue of images', () => {
  const image = (name: string, status: VMDiskImage['status'], annotations = {}): VMDiskImage => ({
    metadata: { namespace: 'farm', name, uid: name, annotations },
    spec: { secretRef: '', sourceType: 'blank', diskSize: '1Gi' },
    ...(status && { status }),
  });
  const put = (queue: SyncQueue, object: VMDiskImage) =>
    queue.update({ type: 'changed', key: `farm/${object.metadata.name}`, object });

  test('the queue lists Syncing images first, and then Queued images by queuedAt and key', () => {
    const queue = new SyncQueue();
    put(queue, image('b', { phase: 'Queued', queuedAt: '2026-01-01T00:00:01.000Z' }));
    put(queue, image('a', { phase: 'Queued', queuedAt: '2026-01-01T00:00:01.000Z' }));
    put(queue, image('c', { phase: 'Queued', queuedAt: '2026-01-01T00:00:00.500Z' }));
    put(
      queue,
      image('d', {
        phase: 'Syncing',
        attempt: { number: 1, startedAt: '2026-01-01T00:00:09.000Z', source: '' },
      }),
    );
    expect(queue.images.map(({ uid }) => uid)).toEqual(['d', 'c', 'a', 'b']);
    expect([queue.count('Queued'), queue.count('Syncing')]).toEqual([3, 1]);
  });

  test('the queue drops images that cannot be synced now, and reports each drop', () => {
    const queue = new SyncQueue();
    const queued = { phase: 'Queued', queuedAt: '2026-01-01T00:00:00.000Z' } as const;
    expect(put(queue, image('a', queued))).toBe(false);
    expect(put(queue, image('a', queued, { 'vmwright.dev/paused': 'true' }))).toBe(true);
    expect(put(queue, image('a', queued))).toBe(false);
    expect(put(queue, image('a', { phase: 'Queued' })), 'the last attempt is being removed').toBe(true);
    put(queue, image('a', queued));
    expect(queue.update({ type: 'removed', key: 'farm/a', object: image('a', queued) })).toBe(true);
    expect(put(queue, image('b', { phase: 'Ready' }))).toBe(false);
    expect(queue.images).toEqual([]);
  });
});

function replica(queue: readonly QueuedImage[], limit: number, onReleased = () => {}): SyncSlots<EntryStore> {
  // The cache is empty, so the replica has to read every holder of a slot from the API server.
  return new SyncSlots<EntryStore>({
    storeOf: (store) => store,
    limit,
    queue: () => queue,
    isCached: () => false,
    onReleased,
  });
}

const queueOf = (...uids: readonly string[]) => uids.map((uid) => queuedImage(uid));

describe('slots', () => {
  test('images get sync slots in the order of the queue, with one write per slot, and keep them after a restart', async () => {
    const server = new EntryServer();
    for (const uid of ['a', 'b', 'c']) server.objects.add(uid);
    const queue = queueOf('a', 'b', 'c');
    const slots = replica(queue, 2);
    expect(await slots.acquire('c', server.store), 'two images are before it').toBe(false);
    expect(await Promise.all(['b', 'a'].map((uid) => slots.acquire(uid, server.store)))).toEqual([
      true,
      true,
    ]);
    expect(await slots.acquire('c', server.store)).toBe(false);
    expect(server).toMatchObject({ writes: 2, reads: 1 });
    const next = replica(queue, 2);
    expect(await next.acquire('a', server.store), 'it holds its slot already').toBe(true);
    expect(await next.acquire('c', server.store)).toBe(false);
    await next.release('a', server.store);
    queue.shift();
    expect(await next.acquire('c', server.store)).toBe(true);
    expect(await next.holds('a', server.store)).toBe(false);
  });

  test('sync slots are re-read when another replica has written them since the last read', async () => {
    const server = new EntryServer();
    for (const uid of ['a', 'b']) server.objects.add(uid);
    const [old, current] = [replica(queueOf('a', 'b'), 1), replica(queueOf('b'), 1)];
    expect(await old.acquire('a', server.store)).toBe(true);
    expect(await current.acquire('b', server.store)).toBe(false);
    await old.release('a', server.store);
    await current.release('a', server.store); // `current` has read the slots before, and still lists the image a
    expect(await current.acquire('b', server.store)).toBe(true);
    expect(server.most).toBe(1);
  });

  test('sync slots of deleted images are released when another image needs a slot', async () => {
    const server = new EntryServer();
    server.objects.add('alive');
    let released = 0;
    const slots = replica(queueOf('alive', 'gone', 'next'), 2, () => released++);
    expect(await slots.acquire('alive', server.store)).toBe(true);
    expect(await slots.acquire('gone', server.store)).toBe(true);
    const other = replica(queueOf('next'), 2, () => released++);
    expect(await other.acquire('next', server.store)).toBe(true);
    expect([...server.entries.values.keys()]).toEqual(['alive', 'next']);
    expect(released).toBe(1);
  });

  test('syncing images get their slots back if the ConfigMap was deleted', async () => {
    const server = new EntryServer();
    const syncing = { ...queuedImage('z'), phase: 'Syncing' } as const;
    const slots = replica([syncing, ...queueOf('a')], 1);
    expect(await slots.acquire('a', server.store)).toBe(false);
    expect(await slots.acquire('z', server.store)).toBe(true);
  });

  test('after an error that is not a conflict, the next operation on sync slots reads the ConfigMap again', async () => {
    const server = new EntryServer();
    const slots = replica(queueOf('a'), 1);
    const lost: EntryStore = {
      ...server.store,
      write: async (held, change) => {
        await server.store.write(held, change);
        throw apiError('no answer', { status: 500 });
      },
    };
    await expect(slots.acquire('a', lost)).rejects.toThrow('no answer');
    expect(await slots.acquire('a', server.store), 'the lost write was executed').toBe(true);
    expect(server.writes).toBe(1);
  });

  test('the number of held sync slots never exceeds the limit, in any order of operations of several replicas', async () => {
    const uids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const action = fc.record({
      replica: fc.nat(2),
      uid: fc.constantFrom(...uids),
      type: fc.constantFrom('acquire', 'acquire', 'release', 'restart'),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 60 }),
        fc.infiniteStream(fc.nat(6)),
        fc.integer({ min: 1, max: 3 }),
        async (actions, turns, limit) => {
          const server = new EntryServer(() => turns.next().value ?? 0);
          for (const uid of uids) server.objects.add(uid);
          const replicas = [0, 1, 2].map(() => replica(queueOf(...uids), limit));
          await Promise.all(
            actions.map(async ({ replica: index, uid, type }) => {
              const slots = replicas[index];
              if (type === 'restart') slots?.reset();
              else await slots?.[type](uid, server.store);
            }),
          );
          expect(server.most).toBeLessThanOrEqual(limit);
        },
      ),
      { numRuns: 300 },
    );
  });
});
