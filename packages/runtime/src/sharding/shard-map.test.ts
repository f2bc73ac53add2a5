import { expect, test } from 'vitest';
import type { Lease } from '../kind/builtin/lease.ts';
import { SHARD_MAP_ANNOTATION, shardMapOf, shardMapText } from './shard-map.ts';

const TIME = '2026-11-15T12:00:00.000000Z';
const OWNERS = ['x-a', undefined, 'x-b', 'x-a'];

function lease(text: string | undefined, renewTime = TIME): Lease {
  const annotations = text === undefined ? {} : { [SHARD_MAP_ANNOTATION]: text };
  return { metadata: { name: 'x-shards', annotations }, spec: { renewTime } };
}

test('a shard map is parsed as it was formatted', () => {
  expect(shardMapOf(lease(shardMapText(OWNERS, TIME)))).toEqual(OWNERS);
});

test('a shard map is formatted as readable JSON', () => {
  expect(JSON.parse(shardMapText(OWNERS, TIME))).toMatchObject({
    shards: 4,
    owners: { 'x-a': [0, 3], 'x-b': [2] },
  });
});

test('a shard map with 256 shards and 10 members is below 2 KiB', () => {
  const owners = Array.from({ length: 256 }, (_, shard) => `vmwright-${'0'.repeat(35)}${shard % 10}`);
  expect(shardMapText(owners, TIME).length).toBeLessThan(2_048);
});

test('the shard map is absent if the Lease is missing, and blank if the Lease has no annotation', () => {
  expect(shardMapOf(undefined)).toBe('absent');
  expect(shardMapOf(lease(undefined))).toBe('blank');
});

test.for([
  ['not JSON', 'x'],
  ['not an object', '[]'],
  ['truncated', shardMapText(OWNERS, TIME).slice(0, 40)],
  ['changed owner', shardMapText(OWNERS, TIME).replace('x-b', 'x-c')],
  ['moved shard', shardMapText(OWNERS, TIME).replace('[2]', '[2,1]')],
  ['changed number of shards', shardMapText(OWNERS, TIME).replace('"shards":4', '"shards":5')],
  ['no checksum', '{"shards":4,"owners":{}}'],
  ['copied from another time', shardMapText(OWNERS, '2026-11-15T11:00:00.000000Z')],
  ['too many shards', shardMapText(new Array(5_000).fill('x-a'), TIME)],
] as const)('an edited shard map counts as damaged: %s', ([, text]) => {
  expect(shardMapOf(lease(text))).toBe('damaged');
});

test('a member named constructor can own shards', () => {
  const owners = ['constructor', 'x-b', 'constructor', 'toString'];
  expect(shardMapOf(lease(shardMapText(owners, TIME)))).toEqual(owners);
});
