import { expect, test } from 'vitest';
import type { Owner } from './external-resources.ts';
import { withoutOwner } from './orphans.ts';

interface Item {
  readonly id: string;
  readonly owner?: Owner;
}

const outside = { ownerOf: ({ owner }: Item) => owner };

test('withoutOwner returns a resource if the UID of its owner is unknown and the namespace of its owner is watched; it skips resources without ownership labels', () => {
  const ours: Item = { id: 'a', owner: { uid: 'u-1', namespace: 'default', name: 'a' } };
  const foreign: Item = { id: 'b' };
  expect(withoutOwner(outside, [ours, foreign], new Set(['u-1']))).toEqual([]);
  expect(withoutOwner(outside, [ours, foreign], new Set())).toEqual([ours]);
  expect(withoutOwner(outside, [ours], new Set(), ['other'])).toEqual([]);
  expect(withoutOwner(outside, [ours], new Set(), ['default'])).toEqual([ours]);
});
