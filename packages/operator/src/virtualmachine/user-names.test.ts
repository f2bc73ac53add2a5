import fc from 'fast-check';
import { expect, test } from 'vitest';
import { legalUserName } from './user-names.ts';

test.for([
  ['demo', 'demo'],
  ['demo user', 'demo-user'],
  ['Demo User ', 'demo-user'],
  ['René', 'rene'],
  ['1st', '_1st'],
  ['-x-', 'x'],
  ['_svc', '_svc'],
  ['a@b.example', 'a-b-example'],
  ['用户', 'user'],
  [`${'a'.repeat(31)} b`, 'a'.repeat(31)],
])('the user name "%s" becomes "%s"', ([name = '', expected]) => {
  expect(legalUserName(name)).toBe(expected);
});

test('every name becomes a legal name, and a legal name is not changed again', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      const legal = legalUserName(name);
      expect(legal).toMatch(/^[a-z_][a-z0-9_-]{0,31}$/);
      expect(legalUserName(legal)).toBe(legal);
    }),
  );
});
