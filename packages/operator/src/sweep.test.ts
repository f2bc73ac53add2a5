import { expect, test } from 'vitest';
import { strangers } from './sweep.ts';

interface Item {
  readonly id: string;
  readonly owner?: { readonly uid: string; readonly namespace: string };
}

const outside = { ownerOf: ({ owner }: Item) => owner };

test('strangers are what is ours, in namespaces of ours, and has no object', () => {
  const ours: Item = { id: 'a', owner: { uid: 'u-1', namespace: 'default' } };
  const foreign: Item = { id: 'b' };
  expect(strangers(outside, [ours, foreign], new Set(['u-1']))).toEqual([]);
  expect(strangers(outside, [ours, foreign], new Set())).toEqual([ours]);
  expect(strangers(outside, [ours], new Set(), ['other'])).toEqual([]);
  expect(strangers(outside, [ours], new Set(), ['default'])).toEqual([ours]);
});
