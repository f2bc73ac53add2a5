import { expect, test } from 'vitest';
import { parseQuantity } from './quantity.ts';

test.each([
  ['18Gi', 18 * 2 ** 30],
  ['500m', 0.5],
  ['2', 2],
  [2, 2],
  ['1e3', 1_000],
  ['1E3', 1_000],
  ['1E', 1e18],
  ['1.5k', 1_500],
  ['.5Mi', 2 ** 19],
  ['-1', -1],
])('%s has the value %d', (text, value) => {
  expect(parseQuantity(text)).toBe(value);
});

test.each(['', 'Gi', '1gb', '1 Gi', '1Gie3', '0x10', 'NaN', '1e'])('"%s" is not a quantity', (text) => {
  expect(parseQuantity(text)).toBeUndefined();
});
