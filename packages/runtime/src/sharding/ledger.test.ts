import { expect, test } from 'vitest';
import type { Lease } from '../kind/builtin/lease.ts';
import { LEDGER, ledgerOf, ledgerText } from './ledger.ts';

const TIME = '2026-11-15T12:00:00.000000Z';
const OWNERS = ['x-a', undefined, 'x-b', 'x-a'];

function lease(text: string | undefined, renewTime = TIME): Lease {
  const annotations = text === undefined ? {} : { [LEDGER]: text };
  return { metadata: { name: 'x-shards', annotations }, spec: { renewTime } };
}

test('a ledger is read as it was written', () => {
  expect(ledgerOf(lease(ledgerText(OWNERS, TIME)))).toEqual(OWNERS);
});

test('people can read it', () => {
  expect(JSON.parse(ledgerText(OWNERS, TIME))).toMatchObject({
    shards: 4,
    owners: { 'x-a': [0, 3], 'x-b': [2] },
  });
});

test('256 shards of 10 members stay small', () => {
  const owners = Array.from({ length: 256 }, (_, shard) => `vmwright-${'0'.repeat(35)}${shard % 10}`);
  expect(ledgerText(owners, TIME).length).toBeLessThan(2_048);
});

test('none, and one without entries, are told apart', () => {
  expect(ledgerOf(undefined)).toBe('absent');
  expect(ledgerOf(lease(undefined))).toBe('blank');
});

test.for([
  ['no JSON', 'x'],
  ['no object', '[]'],
  ['half of it', ledgerText(OWNERS, TIME).slice(0, 40)],
  ['another owner', ledgerText(OWNERS, TIME).replace('x-b', 'x-c')],
  ['a shard moved', ledgerText(OWNERS, TIME).replace('[2]', '[2,1]')],
  ['another number of shards', ledgerText(OWNERS, TIME).replace('"shards":4', '"shards":5')],
  ['no sum', '{"shards":4,"owners":{}}'],
  ['one from another time', ledgerText(OWNERS, '2026-11-15T11:00:00.000000Z')],
  ['too many shards', ledgerText(new Array(5_000).fill('x-a'), TIME)],
] as const)('a ledger that somebody has edited is not believed: %s', ([, text]) => {
  expect(ledgerOf(lease(text))).toBe('damaged');
});

test('a replica called constructor owns its shards like any other', () => {
  const owners = ['constructor', 'x-b', 'constructor', 'toString'];
  expect(ledgerOf(lease(ledgerText(owners, TIME)))).toEqual(owners);
});
