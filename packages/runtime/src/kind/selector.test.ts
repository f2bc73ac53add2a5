import { expect, test } from 'vitest';
import { byFields, byLabels } from './selector.ts';

const object = (labels: Record<string, string>) => ({ metadata: { name: 'a', namespace: 'b', labels } });

test.each(['toString', 'constructor', 'valueOf'])(
  'a label with the name of an inherited property (%s) exists only on objects that have the label',
  (key) => {
    expect(byLabels(key)(object({}))).toBe(false);
    expect(byLabels(`!${key}`)(object({}))).toBe(true);
    expect(byLabels(`${key} notin (x)`)(object({}))).toBe(true);
    expect(byLabels(key)(object({ [key]: 'x' }))).toBe(true);
    expect(byLabels(`${key}=x`)(object({ [key]: 'x' }))).toBe(true);
    expect(byFields(`metadata.${key}=`)(object({}))).toBe(true);
  },
);
