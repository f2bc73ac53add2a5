import { expect, test } from 'vitest';
import type { Owner } from './external-resources.ts';
import { withoutOwner } from './orphans.ts';

interface Item {
  readonly id: string;
  readonly owner?: Owner;
}

const outside = { ownerOf: ({ owner }: Item) => owner };

test('withoutOwner returns only resources with an unknown owner in a watched namespace', () => {
  const ours: Item = { id: 'a', owner: { uid: 'u-1', namespace: 'default', name: 'a' } };
  const foreign: Item = { id: 'b' };
  expect(withoutOwner(outside, [ours, foreign], new Set(['u-1']))).toEqual([]);
  expect(withoutOwner(outside, [ours, foreign], new Set())).toEqual([ours]);
  expect(withoutOwner(outside, [ours], new Set(), ['other'])).toEqual([]);
  expect(withoutOwner(outside, [ours], new Set(), ['default'])).toEqual([ours]);
});
