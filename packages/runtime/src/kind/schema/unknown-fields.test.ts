import { expect, test } from 'vitest';
import { anything, array, map, object, optional, string } from './index.ts';
import { unknownFields } from './unknown-fields.ts';

const SCHEMA = object({
  name: optional(string()),
  items: optional(array(object({ size: optional(string()) }))),
  labels: optional(map(object({ text: optional(string()) }))),
  free: optional(anything()),
});

test.each([
  [{ name: 'a', items: [{ size: '1' }], labels: { any: { text: 'x' } } }, []],
  [{ nmae: 'a' }, ['nmae']],
  [{ items: [{ size: '1' }, { sise: '2' }] }, ['items[1].sise']],
  [{ labels: { any: { txt: 'x' } } }, ['labels.any.txt']],
  [{ free: { a: { b: 1 } } }, []],
  [{ name: { of: 'a wrong type' } }, ['name.of']],
  ['no object', []],
])('the unknown fields of %j are %j', (value, paths) => {
  expect(unknownFields(SCHEMA, value)).toEqual(paths);
});
