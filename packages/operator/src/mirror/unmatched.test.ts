import { VirtualClock } from '@vmwright/core/testing';
import { expect, test } from 'vitest';
import { Unmatched } from './unmatched.ts';

test('the delay before the next search for the row of a VM doubles from 1 s up to 30 s', () => {
  const clock = new VirtualClock(0);
  const unmatched = new Unmatched(clock);
  unmatched.add('tenant/web');
  const searchedAt: number[] = [];
  for (let second = 0; second < 150; second++) {
    if (unmatched.due().length > 0) searchedAt.push(clock.monotonic() / 1_000);
    clock.advance(1_000);
  }
  expect(searchedAt).toEqual([1, 3, 7, 15, 31, 61, 91, 121]);
});

test('if a VM is added again without being removed, the time of the next search for its row does not change', () => {
  const clock = new VirtualClock();
  const unmatched = new Unmatched(clock);
  unmatched.add('tenant/web');
  clock.advance(999);
  unmatched.add('tenant/web');
  expect(unmatched.due()).toEqual([]);
  clock.advance(1);
  expect(unmatched.due()).toEqual(['tenant/web']);
  unmatched.add('tenant/web');
  expect(unmatched.due()).toEqual([]);
  expect(unmatched.size).toBe(1);
});

test('VMs with searches that are due at the same time are returned together', () => {
  const clock = new VirtualClock();
  const unmatched = new Unmatched(clock);
  for (const key of ['tenant/a', 'tenant/b']) unmatched.add(key);
  clock.advance(600);
  unmatched.add('tenant/c');
  clock.advance(400);
  expect(unmatched.due()).toEqual(['tenant/a', 'tenant/b']);
  clock.advance(600);
  expect(unmatched.due()).toEqual(['tenant/c']);
});

test('after a VM was removed and added again, the first search for its row follows after the shortest delay', () => {
  const clock = new VirtualClock();
  const unmatched = new Unmatched(clock);
  unmatched.add('tenant/web');
  for (let search = 0; search < 5; search++) {
    clock.advance(30_000);
    unmatched.due();
  }
  unmatched.delete('tenant/web');
  expect(unmatched.has('tenant/web')).toBe(false);
  clock.advance(60_000);
  expect(unmatched.due()).toEqual([]);
  unmatched.add('tenant/web');
  clock.advance(1_000);
  expect(unmatched.due()).toEqual(['tenant/web']);
  unmatched.clear();
  expect(unmatched.size).toBe(0);
});
