import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Glob } from './glob.ts';

test.each([
  ['gpu-*', 'gpu-1', true],
  ['gpu-*', 'my-gpu-1', false],
  ['*', '', true],
  ['', 'a', false],
  ['n?', 'n1', true],
  ['n?', 'n', false],
  ['?*?', 'a', false],
  ['*a?c*', 'xxabcxx', true],
  ['n.1', 'nx1', false],
])('whether %s matches "%s": %s', (pattern, text, expected) => {
  expect(new Glob(pattern, { anyCharacter: '?' }).matches(text)).toBe(expected);
});

test('a question mark is an ordinary character by default', () => {
  expect(new Glob('n?').matches('n1')).toBe(false);
  expect(new Glob('n?').matches('n?')).toBe(true);
});

test('a pattern matches the same texts as the equivalent regular expression', () => {
  const texts = (unit: readonly string[]) =>
    fc.array(fc.constantFrom(...unit), { maxLength: 8 }).map((characters) => characters.join(''));
  fc.assert(
    fc.property(texts(['a', 'b', '*', '?']), texts(['a', 'b']), (pattern, text) => {
      const source = pattern.replaceAll('*', '.*').replaceAll('?', '.');
      expect(new Glob(pattern, { anyCharacter: '?' }).matches(text)).toBe(
        new RegExp(`^${source}$`).test(text),
      );
    }),
    { numRuns: 1_000 },
  );
});

test('a pattern with many wildcards does not take exponential time', () => {
  const pattern = new Glob(`${'*a'.repeat(30)}*b`, { anyCharacter: '?' });
  expect(pattern.matches('a'.repeat(253))).toBe(false);
}, 1_000);
