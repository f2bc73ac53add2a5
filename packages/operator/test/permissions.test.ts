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

test('expectExactUse accepts a role if every rule is used', () => {
  expectExactUse([LIST], [roleOf('list')]);
});

test('expectExactUse rejects a role with an unused rule', () => {
  expect(() => expectExactUse([LIST], [roleOf('list', 'delete')])).toThrow('delete pods');
  expect(() => expectExactUse([LIST], [{ ...roleOf('list'), metadata: { namespace: 'b' } }])).toThrow(
    'list pods',
  );
});

test('expectExactUse rejects a request that the API server denied', () => {
  expect(() => expectExactUse([{ ...LIST, allowed: false }], [roleOf('list')])).toThrow('list pods');
});
