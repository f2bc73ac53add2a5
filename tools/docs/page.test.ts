import { expect, test } from 'vitest';
import { withSection } from './page.ts';
import { tableOf } from './table.ts';

test('withSection replaces only the text between the marks of the section', () => {
  const page = 'a\n<!-- generated: x -->\n\nold\n\n<!-- end -->\nb\n<!-- generated: y -->\n\n<!-- end -->\n';
  const changed =
    'a\n<!-- generated: x -->\n\nnew $&\n\n<!-- end -->\nb\n<!-- generated: y -->\n\n<!-- end -->\n';
  expect(withSection(page, 'x', 'new $&')).toBe(changed);
  expect(withSection(changed, 'x', 'new $&')).toBe(changed);
});

test('withSection rejects a page without the marks of the section', () => {
  expect(() => withSection('a', 'x', '')).toThrow('the page has no section <!-- generated: x -->');
});

test('tableOf aligns the columns', () => {
  expect(
    tableOf([
      ['a', 'long'],
      ['wide', 'b'],
    ]),
  ).toBe('| a    | long |\n| ---- | ---- |\n| wide | b    |');
});
