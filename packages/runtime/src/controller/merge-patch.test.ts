import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mergePatch } from './merge-patch.ts';

/** Applies a merge patch as RFC 7386 defines it. */
function apply(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result = new Map(
    Object.entries(typeof target === 'object' && target !== null && !Array.isArray(target) ? target : {}),
  );
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) result.delete(field);
    else result.set(field, apply(result.get(field), value));
  }
  return Object.fromEntries(result);
}

/** Arbitrary statuses, without null, which a merge patch cannot set. */
const status = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('', 'a', 'b', 0, 1, true, false),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.dictionary(fc.constantFrom('x', 'y', 'conditions', 'constructor'), tie('value'), { maxKeys: 4 }),
})).object;

test('applying the merge patch to the old value gives the new value', () => {
  fc.assert(
    fc.property(status, status, (before, after) => {
      const patch = mergePatch(before, after);
      expect(patch === undefined ? before : apply(before, patch)).toEqual(after);
    }),
    { numRuns: 2_000 },
  );
});

test('the merge patch of equal values is undefined', () => {
  fc.assert(
    fc.property(status, (value) => {
      expect(mergePatch(value, structuredClone(value))).toBeUndefined();
    }),
  );
  expect(mergePatch({ a: 1, b: undefined }, { a: 1, c: undefined })).toBeUndefined();
});
