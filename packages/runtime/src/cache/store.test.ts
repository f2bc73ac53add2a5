import { describe, expect, test } from 'vitest';
import { Store } from './store.ts';

const object = (resourceVersion: number, uid = 'u-1') => ({
  metadata: { namespace: 'n', name: 'a', uid, resourceVersion: String(resourceVersion) },
});

describe('tombstones', () => {
  const deleted = () => {
    const store = new Store();
    store.put('n/a', object(10));
    store.addTombstone('n/a', 'u-1');
    return store;
  };

  test('a tombstone hides every version of the deleted object, even after a list that still contains the object', () => {
    const store = deleted();
    store.clearTombstones('', new Set(['n/a']), 12);
    expect(store.put('n/a', object(11))).toBeUndefined();
    store.clearTombstone('u-1'); // the watch reports the deletion
    expect(store.size).toBe(0);
  });

  test('a tombstone survives a list that is older than the object, and a list of another namespace', () => {
    const store = deleted();
    store.clearTombstones('', new Set(), 9);
    expect(store.put('n/a', object(10))).toBeUndefined();
    store.clearTombstones('other/', new Set(), 12);
    expect(store.put('n/a', object(10))).toBeUndefined();
  });

  test('a tombstone is cleared by a list without the object, and does not hide a new object of the same name', () => {
    const store = deleted();
    expect(store.put('n/a', object(12, 'u-2'))?.type).toBe('added');
    store.clearTombstones('', new Set(), 12);
    expect(store.put('n/a', object(13, 'u-1'))?.type).toBe('changed');
  });
});

test('if resource versions are not numbers, the object that arrives last is stored', () => {
  const store = new Store();
  const odd = (resourceVersion: string) => ({ metadata: { name: 'a', uid: 'u', resourceVersion } });
  expect(store.put('a', odd('one'))?.type).toBe('added');
  expect(store.put('a', odd('two'))?.type).toBe('changed');
});

test('`replaces` is true when the new object has the same name and another UID', () => {
  const store = new Store();
  expect(store.put('n/a', object(10))?.replaces).toBe(false);
  expect(store.put('n/a', object(11))?.replaces).toBe(false);
  expect(store.put('n/a', object(12, 'u-2'))?.replaces).toBe(true);
});
