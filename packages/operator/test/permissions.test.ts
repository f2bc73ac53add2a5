import type { AuditedRequest } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { expectExactUse } from './permissions.ts';

const LIST: AuditedRequest = {
  user: 'u',
  verb: 'list',
  group: '',
  resource: 'pods',
  namespace: 'a',
  name: undefined,
  allowed: true,
};
const roleOf = (...verbs: readonly string[]) => ({
  metadata: { namespace: 'a' },
  rules: [{ apiGroups: [''], resources: ['pods'], verbs }],
});

test('a role whose rules are all used passes', () => {
  expectExactUse([LIST], [roleOf('list')]);
});

test('an unused rule fails', () => {
  expect(() => expectExactUse([LIST], [roleOf('list', 'delete')])).toThrow('delete pods');
  expect(() => expectExactUse([LIST], [{ ...roleOf('list'), metadata: { namespace: 'b' } }])).toThrow(
    'list pods',
  );
});

test('a denied request fails', () => {
  expect(() => expectExactUse([{ ...LIST, allowed: false }], [roleOf('list')])).toThrow('list pods');
});
