import { describe, expect, test } from 'vitest';
import { assign } from './assignment.ts';
import { type PlanInput, planOf } from './plan.ts';
import type { Owners } from './shard-map.ts';

const SHARDS = 8;
const SELF = 'x-a';
const OTHER = 'x-b';
const desired = assign(SHARDS, [SELF, OTHER]);
const mine = [...desired.keys()].filter((shard) => desired[shard] === SELF);
const theirs = [...desired.keys()].filter((shard) => desired[shard] === OTHER);
const unowned: Owners = new Array(SHARDS).fill(undefined);
const onlyMine: Owners = desired.map((owner) => (owner === SELF ? SELF : undefined));

function plan(input: Partial<PlanInput>) {
  return planOf({
    self: SELF,
    shardMap: desired,
    live: [SELF, OTHER],
    isGone: () => false,
    blankIsSafe: false,
    held: new Set(),
    shards: SHARDS,
    ...input,
  });
}

const NOTHING = { write: undefined, claims: [], release: [] };

test('the assignment gives both test members more than one shard', () => {
  expect(mine.length).toBeGreaterThan(1);
  expect(theirs.length).toBeGreaterThan(1);
});

test('the plan of a member that holds exactly its own shards is empty', () => {
  expect(plan({ held: new Set(mine) })).toEqual(NOTHING);
});

test('a free shard is claimed only by the member that should own it', () => {
  expect(plan({ shardMap: unowned })).toEqual({ write: onlyMine, claims: mine, release: [] });
});

test('a shard of another member is not claimed until that member is gone', () => {
  const shardMap = new Array(SHARDS).fill(OTHER);
  expect(plan({ shardMap })).toEqual(NOTHING);
  const claimed = desired.map((owner) => (owner === SELF ? SELF : OTHER));
  expect(plan({ shardMap, isGone: () => true }).write).toEqual(claimed);
});

test('a member releases a shard that another member should own, and then marks the shard as free in the map', () => {
  const shardMap = new Array(SHARDS).fill(SELF);
  const all = new Set(unowned.keys());
  expect(plan({ shardMap, held: all })).toEqual({ write: undefined, claims: [], release: theirs });
  expect(plan({ shardMap, held: new Set(mine) })).toEqual({ write: onlyMine, claims: [], release: [] });
});

test('if the map already names a member as the owner of a shard that the member does not hold, the member still claims the shard with a write', () => {
  expect(plan({})).toEqual({ write: desired, claims: mine, release: [] });
});

describe('shard map with unknown owners', () => {
  test.for(['absent', 'damaged'] as const)(
    'if the shard map is %s, a blank shard map is written',
    (shardMap) => {
      expect(plan({ shardMap, blankIsSafe: true })).toEqual({ write: 'blank', claims: [], release: [] });
    },
  );

  test('owners are written to a blank shard map only when no member can still act according to an older map', () => {
    expect(plan({ shardMap: 'blank' })).toEqual(NOTHING);
    expect(plan({ shardMap: 'blank', blankIsSafe: true }).write).toEqual(onlyMine);
  });

  test('a replica that is not a member yet replaces a blank shard map by one without owners', () => {
    const input = { self: undefined, live: [] };
    expect(plan({ ...input, shardMap: 'blank', blankIsSafe: true }).write).toEqual(unowned);
    expect(plan({ ...input, shardMap: unowned })).toEqual(NOTHING);
  });
});

describe('number of shards in the configuration and in the map', () => {
  const other: Owners = new Array(3).fill(OTHER);

  test('a member uses the number of shards in the map, not the configured number, until all other owners in the map are gone', () => {
    expect(plan({ shardMap: other })).toEqual(NOTHING);
    expect(plan({ shardMap: [...other, undefined], live: [SELF] }).claims).toEqual([3]);
  });

  test('a member writes a new map with the configured number of shards when all other owners in the map are gone', () => {
    expect(plan({ shardMap: other, isGone: () => true }).write).toEqual(onlyMine);
    const shards = 1;
    const only = [SELF, OTHER].find((name) => assign(shards, [SELF, OTHER])[0] !== name) ?? '';
    expect(plan({ self: only, shardMap: new Array(3).fill(only), shards }).write).toEqual([undefined]);
  });
});
