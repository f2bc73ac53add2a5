import { beforeEach, expect, test } from 'vitest';
import type { CacheEvent } from '../cache/cache-event.ts';
import type { KubeObject } from '../kind/object.ts';
import { WitnessedDeletions } from './witnessed-deletions.ts';

const HOUR_MS = 3_600_000;

let now: number;
let deletions: WitnessedDeletions;
type Change = Pick<CacheEvent<KubeObject>, 'type' | 'object' | 'before' | 'replaces'>;
let notify: (change: Change) => void;

beforeEach(() => {
  now = 0;
  const cache = {
    subscribe: (subscriber: (change: Change) => void) => {
      notify = subscriber;
    },
  };
  deletions = new WitnessedDeletions({
    cache,
    world: { monotonic: () => now },
    deletesExternal: ({ metadata }) => metadata.annotations?.policy !== 'keep',
  });
});

function vm(uid: string, isTerminating: boolean, annotations: Record<string, string> = {}): KubeObject {
  const deletionTimestamp = isTerminating ? '2026-01-01T00:00:00Z' : undefined;
  return { metadata: { name: 'web', uid, annotations, ...(deletionTimestamp && { deletionTimestamp }) } };
}

function removed(object: KubeObject): void {
  notify({ type: 'removed', object, before: object, replaces: false });
}

test('the removal of an object that had a deletionTimestamp is a witnessed deletion', () => {
  removed(vm('a', true));
  expect(deletions.has('a')).toBe(true);
  expect(deletions.has('b')).toBe(false);
});

test('the removal of an object without a deletionTimestamp is not a witnessed deletion', () => {
  removed(vm('a', false));
  expect(deletions.has('a')).toBe(false);
});

test('the deletion of a replaced object is witnessed only if the object had a deletionTimestamp', () => {
  notify({ type: 'changed', object: vm('b', false), before: vm('a', true), replaces: true });
  notify({ type: 'changed', object: vm('d', false), before: vm('c', false), replaces: true });
  expect(['a', 'b', 'c', 'd'].filter((uid) => deletions.has(uid))).toEqual(['a']);
});

test('a deletion that keeps the external resources does not count as witnessed', () => {
  removed(vm('a', true, { policy: 'keep' }));
  expect(deletions.has('a')).toBe(false);
});

test('a witnessed deletion is forgotten when the object is restored with the same UID', () => {
  removed(vm('a', true));
  notify({ type: 'added', object: vm('a', false), before: undefined, replaces: false });
  removed(vm('a', false));
  expect(deletions.has('a')).toBe(false);
});

test('a witnessed deletion is forgotten after an hour without a call of touch()', () => {
  removed(vm('a', true));
  removed(vm('b', true));
  now = HOUR_MS - 1;
  deletions.touch('a');
  now = HOUR_MS;
  expect(['a', 'b'].filter((uid) => deletions.has(uid))).toEqual(['a']);
  now = 2 * HOUR_MS;
  deletions.touch('a');
  expect(deletions.has('a')).toBe(false);
});

test('the oldest witnessed deletion is forgotten when there are more than 10,000', () => {
  for (let n = 0; n <= 10_000; n++) removed(vm(`vm-${n}`, true));
  expect(['vm-0', 'vm-1', 'vm-10000'].map((uid) => deletions.has(uid))).toEqual([false, true, true]);
});
