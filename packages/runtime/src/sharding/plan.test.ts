import { describe, expect, test } from 'vitest';
import { assign } from './assignment.ts';
import type { Owners } from './ledger.ts';
import { planOf, type Situation } from './plan.ts';

const SHARDS = 8;
const ME = 'x-a';
const OTHER = 'x-b';
const wanted = assign(SHARDS, [ME, OTHER]);
const mine = [...wanted.keys()].filter((shard) => wanted[shard] === ME);
const theirs = [...wanted.keys()].filter((shard) => wanted[shard] === OTHER);
const nobody: Owners = new Array(SHARDS).fill(undefined);
const onlyMine: Owners = wanted.map((owner) => (owner === ME ? ME : undefined));

function plan(situation: Partial<Situation>) {
  return planOf({
    me: ME,
    ledger: wanted,
    live: [ME, OTHER],
    isGone: () => false,
    blankIsSafe: false,
    held: new Set(),
    shards: SHARDS,
    ...situation,
  });
}

const NOTHING = { write: undefined, claims: [], leave: [] };

test('both have shards in these tests', () => {
  expect(mine.length).toBeGreaterThan(1);
  expect(theirs.length).toBeGreaterThan(1);
});

test('at rest there is nothing to do', () => {
  expect(plan({ held: new Set(mine) })).toEqual(NOTHING);
});

test('what is free is claimed by the one who should own it, and by nobody else', () => {
  expect(plan({ ledger: nobody })).toEqual({ write: onlyMine, claims: mine, leave: [] });
});

test('what another owns is left alone until he is gone, whoever should own it', () => {
  const ledger = new Array(SHARDS).fill(OTHER);
  expect(plan({ ledger })).toEqual(NOTHING);
  const claimed = wanted.map((owner) => (owner === ME ? ME : OTHER));
  expect(plan({ ledger, isGone: () => true }).write).toEqual(claimed);
});

test('what another should own is left first, and given away when it is no longer held', () => {
  const ledger = new Array(SHARDS).fill(ME);
  const all = new Set(nobody.keys());
  expect(plan({ ledger, held: all })).toEqual({ write: undefined, claims: [], leave: theirs });
  expect(plan({ ledger, held: new Set(mine) })).toEqual({ write: onlyMine, claims: [], leave: [] });
});

test('what is ours by the ledger but not held is written once more before it is held', () => {
  expect(plan({})).toEqual({ write: wanted, claims: mine, leave: [] });
});

describe('who owns what is unknown', () => {
  test.for(['absent', 'damaged'] as const)('a ledger that is %s is made blank, for all to see', (ledger) => {
    expect(plan({ ledger, blankIsSafe: true })).toEqual({ write: 'blank', claims: [], leave: [] });
  });

  test('a blank ledger is filled when nobody can act by an older one', () => {
    expect(plan({ ledger: 'blank' })).toEqual(NOTHING);
    expect(plan({ ledger: 'blank', blankIsSafe: true }).write).toEqual(onlyMine);
  });

  test('one that is no member yet prepares the ledger, and claims nothing', () => {
    expect(plan({ me: undefined, live: [], ledger: 'blank', blankIsSafe: true }).write).toEqual(nobody);
    expect(plan({ me: undefined, live: [], ledger: nobody })).toEqual(NOTHING);
  });
});

describe('another version of the program divides into another number of shards', () => {
  const other: Owners = new Array(3).fill(OTHER);

  test('it follows the ledger while somebody acts by it', () => {
    expect(plan({ ledger: other })).toEqual(NOTHING);
    expect(plan({ ledger: [...other, undefined], live: [ME] }).claims).toEqual([3]);
  });

  test('it divides anew when nobody does, also if nothing of that is for itself', () => {
    expect(plan({ ledger: other, isGone: () => true }).write).toEqual(onlyMine);
    const shards = 1;
    const only = [ME, OTHER].find((name) => assign(shards, [ME, OTHER])[0] !== name) ?? '';
    expect(plan({ me: only, ledger: new Array(3).fill(only), shards }).write).toEqual([undefined]);
  });
});
