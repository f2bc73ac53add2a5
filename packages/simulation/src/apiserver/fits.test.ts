import { schema } from '@vmwright/runtime';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Widget } from '../runtime/kinds.ts';
import { fits } from './fits.ts';
import { same } from './json.ts';

const { object, optional, string, integer, boolean, array, map, literals, anything } = schema;

/** Schema with every kind of field, including the kinds that only `schema.admit` supports. */
const MIXED = object({
  name: string(),
  size: optional(integer({ minimum: 1 })),
  on: optional(boolean()),
  phase: optional(literals(['New', 'Old'])),
  labels: optional(map(string())),
  parts: optional(array(object({ id: string() }))),
  short: optional(string({ maxLength: 3 })),
  free: optional(anything()),
  level: optional(integer({ default: 2 })),
});

const anyValue = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom('', 'New', 'a text', 0, 1, 1.5, true, null),
    fc.array(tie('any'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('name', 'id', 'x'), tie('any'), { maxKeys: 2 }),
  ),
})).any;

/** Generates mostly values that match the schema. */
const mostly = (valid: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 6, arbitrary: valid }, { weight: 1, arbitrary: anyValue });
const text = fc.constantFrom('', 'New', 'Old', 'a text');
const plain = fc.record(
  {
    name: mostly(text),
    size: mostly(fc.constantFrom(0, 1, 7)),
    on: mostly(fc.boolean()),
    phase: mostly(text),
    labels: mostly(fc.dictionary(fc.constantFrom('a', 'b'), mostly(text))),
    parts: mostly(fc.array(mostly(fc.record({ id: mostly(text) })), { maxLength: 2 })),
    level: mostly(fc.integer()),
    free: anyValue,
  },
  { requiredKeys: ['name', 'level'] },
);
const more = fc.record({ short: text, unknown: anyValue }, { requiredKeys: [] });
const extras = fc.oneof({ weight: 5, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: more });
const value = mostly(fc.tuple(plain, extras).map(([one, other]) => ({ ...one, ...other })));

describe('fits', () => {
  test('fits accepts only values that the API server would store unchanged', () => {
    let accepted = 0;
    fc.assert(
      fc.property(value, (candidate) => {
        if (!fits(MIXED, candidate)) return;
        accepted += 1;
        const admitted = schema.admit(MIXED, candidate);
        expect(admitted.ok && same(admitted.value, candidate)).toBe(true);
      }),
      { numRuns: 20_000 },
    );
    expect(accepted).toBeGreaterThan(500);
  });

  test('fits accepts objects as controllers usually write them, and rejects wrong, missing and unknown fields', () => {
    const status = { made: 'a', observedGeneration: 1, conditions: [] };
    expect(fits(Widget.schema, { spec: { text: 'a' } })).toBe(true);
    expect(fits(Widget.schema, { spec: { text: 'a' }, status })).toBe(true);
    expect(fits(Widget.schema, { spec: { text: 1 } })).toBe(false);
    expect(fits(Widget.schema, { spec: {} })).toBe(false);
    expect(fits(Widget.schema, { spec: { text: 'a', more: 'b' } })).toBe(false);
  });
});
