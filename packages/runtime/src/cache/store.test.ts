import { describe, expect, test } from 'vitest';
import { Store } from './store.ts';

const object = (resourceVersion: number, uid = 'u-1') => ({
  metadata: { namespace: 'n', name: 'a', uid, resourceVersion: String(resourceVersion) },
});

describe('an object that we have deleted', () => {
  const deleted = () => {
    const store = new Store();
    store.put('n/a', object(10));
    store.addTombstone('n/a', 'u-1');
    return store;
  };

  test('does not come back with what was on its way, also where a list that still has it comes to its end', () => {
    const store = deleted();
    store.clearTombstones('', new Set(['n/a']), 12);
    expect(store.put('n/a', object(11))).toBeUndefined();
    store.clearTombstone('u-1'); // the watch tells of the deletion
    expect(store.size).toBe(0);
  });

  test('is not forgotten by a list that is older than it', () => {
    const store = deleted();
    store.clearTombstones('', new Set(), 9);
    expect(store.put('n/a', object(10))).toBeUndefined();
    store.clearTombstones('other/', new Set(), 12);
    expect(store.put('n/a', object(10))).toBeUndefined();
  });

  test('is forgotten with a list without it, so that memory does not grow; another of its name may come at any time', () => {
    const store = deleted();
    expect(store.put('n/a', object(12, 'u-2'))?.type).toBe('added');
    store.clearTombstones('', new Set(), 12);
    expect(store.put('n/a', object(13, 'u-1'))?.type).toBe('changed');
  });
});

test('versions that are no numbers replace each other as they come', () => {
  const store = new Store();
  const odd = (resourceVersion: string) => ({ metadata: { name: 'a', uid: 'u', resourceVersion } });
  expect(store.put('a', odd('one'))?.type).toBe('added');
  expect(store.put('a', odd('two'))?.type).toBe('changed');
});

test('a change says whether it replaces another object of the same name', () => {
  const store = new Store();
  expect(store.put('n/a', object(10))?.replaces).toBe(false);
  expect(store.put('n/a', object(11))?.replaces).toBe(false);
  expect(store.put('n/a', object(12, 'u-2'))?.replaces).toBe(true);
});
