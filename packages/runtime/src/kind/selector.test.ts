import { expect, test } from 'vitest';
import { byFields, byLabels } from './selector.ts';

const object = (labels: Record<string, string>) => ({ metadata: { name: 'a', namespace: 'b', labels } });

test.each(['toString', 'constructor', 'valueOf'])(
  'a selector does not treat the inherited property %s as a label',
  (key) => {
    expect(byLabels(key)(object({}))).toBe(false);
    expect(byLabels(`!${key}`)(object({}))).toBe(true);
    expect(byLabels(`${key} notin (x)`)(object({}))).toBe(true);
    expect(byLabels(key)(object({ [key]: 'x' }))).toBe(true);
    expect(byLabels(`${key}=x`)(object({ [key]: 'x' }))).toBe(true);
    expect(byFields(`metadata.${key}=`)(object({}))).toBe(true);
  },
);
