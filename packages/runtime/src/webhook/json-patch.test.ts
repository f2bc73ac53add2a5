import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyPatch } from '../../test/webhook-patch.ts';
import { jsonPatch } from './json-patch.ts';

test('a JSON patch contains only differences and is empty for equal values', () => {
  expect(jsonPatch({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })).toEqual([]);
  expect(jsonPatch({ a: 1, b: { c: 2, d: 3 } }, { a: 1, b: { c: 4 }, e: null })).toEqual([
    { op: 'replace', path: '/b/c', value: 4 },
    { op: 'remove', path: '/b/d' },
    { op: 'add', path: '/e', value: null },
  ]);
});

test('slashes and tildes in field names are escaped in the paths of a JSON patch', () => {
  const before = { labels: { 'a/b': '1', 'c~d': '2', '~1': '3', '': '4' } };
  expect(jsonPatch(before, { labels: { 'a/b': '5', 'x~/y': '6', '': '7' } })).toEqual([
    { op: 'replace', path: '/labels/a~1b', value: '5' },
    { op: 'remove', path: '/labels/c~0d' },
    { op: 'remove', path: '/labels/~01' },
    { op: 'replace', path: '/labels/', value: '7' },
    { op: 'add', path: '/labels/x~0~1y', value: '6' },
  ]);
});

test('inserting or removing an array item is one operation of the JSON patch', () => {
  expect(jsonPatch([1, 2, 3], [1, 9, 2, 3])).toEqual([{ op: 'add', path: '/1', value: 9 }]);
  expect(jsonPatch([1, 2, 3], [1, 3])).toEqual([{ op: 'remove', path: '/1' }]);
  expect(jsonPatch([{ n: 1 }, { n: 2 }], [{ n: 1 }, { n: 3 }])).toEqual([
    { op: 'replace', path: '/1/n', value: 3 },
  ]);
});

const key = fc.oneof(
  fc.constantFrom('a', 'b', 'a/b', '~', '~0', '~1', '', '0', '-', '__proto__'),
  fc.string(),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, 0, 1, '', 'x'),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
  ),
}));

test('applying the JSON patch to `before` gives `after` for random values', () => {
  fc.assert(
    fc.property(value, value, (before, after) => {
      expect(applyPatch(before, jsonPatch(before, after))).toEqual(after);
    }),
    { numRuns: 2_000 },
  );
});
