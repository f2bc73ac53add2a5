import { expect, test } from 'vitest';
import { assertPlaceable } from './placement.ts';

const PLACEMENT = { folder: 'a//b' };

test('a group with an invalid folder cannot be placed', () => {
  const group = { metadata: { name: 'web' } };
  expect(() => assertPlaceable(group, PLACEMENT)).toThrow('placement.folder must name a folder');
  expect(() => assertPlaceable(group, { folder: 'a/b' })).not.toThrow();
});

test('a group with an invalid folder can be deleted', () => {
  const group = { metadata: { name: 'web', deletionTimestamp: '2026-01-01T00:00:00Z' } };
  expect(() => assertPlaceable(group, PLACEMENT)).not.toThrow();
});
