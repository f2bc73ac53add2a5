import fc from 'fast-check';
import { expect, test } from 'vitest';
import { assign, shardOf } from './assignment.ts';

const SHARDS = 256;
const names = fc.uniqueArray(
  fc.uuid().map((uuid) => `vmwright-${uuid}`),
  { minLength: 1, maxLength: 12 },
);

function countByOwner(owners: readonly (string | undefined)[]): Map<string | undefined, number> {
  const counts = new Map<string | undefined, number>();
  for (const owner of owners) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  return counts;
}

test('every member gets about the same number of shards', () => {
  fc.assert(
    fc.property(names, (members) => {
      const counts = countByOwner(assign(SHARDS, members));
      const fair = SHARDS / members.length;
      // Six standard deviations of a random assignment.
      const maxDeviation = 6 * Math.sqrt(fair * (1 - 1 / members.length));
      for (const member of members)
        expect(Math.abs((counts.get(member) ?? 0) - fair)).toBeLessThanOrEqual(maxDeviation);
    }),
  );
});

test('the assignment does not depend on the order of the members', () => {
  fc.assert(
    fc.property(names, (members) => {
      expect(assign(SHARDS, members.toReversed())).toEqual(assign(SHARDS, members));
      expect(assign(SHARDS, members.toSorted())).toEqual(assign(SHARDS, members));
    }),
  );
});

test('when a member joins or leaves, no shard moves between two other members', () => {
  fc.assert(
    fc.property(names, fc.uuid(), (members, another) => {
      const before = assign(SHARDS, members);
      const after = assign(SHARDS, [...members, another]);
      for (const [shard, owner] of after.entries()) if (owner !== another) expect(owner).toBe(before[shard]);
    }),
  );
});

test('without members no shard has an owner', () => {
  expect(assign(3, [])).toEqual([undefined, undefined, undefined]);
});

test('namespaces are spread evenly over the shards', () => {
  const counts = new Array<number>(16).fill(0);
  for (let at = 0; at < 1_600; at++) {
    const shard = shardOf(`team-${at}`, 16);
    counts[shard] = (counts[shard] ?? 0) + 1;
  }
  for (const count of counts) {
    expect(count).toBeGreaterThan(60);
    expect(count).toBeLessThan(140);
  }
});

test('shards and their owners are the same in every version of the program', () => {
  // If two versions disagreed, a replica of each version could act on the same namespace.
  expect(['', 'default', 'kube-system', 'team-a'].map((name) => shardOf(name, 256))).toMatchInlineSnapshot(`
    [
      11,
      44,
      11,
      208,
    ]
  `);
  expect(assign(8, ['x-a', 'x-b', 'x-c'])).toMatchInlineSnapshot(`
    [
      "x-a",
      "x-c",
      "x-a",
      "x-a",
      "x-a",
      "x-c",
      "x-c",
      "x-a",
    ]
  `);
});
