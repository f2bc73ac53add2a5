import type { Planted } from './planted.ts';

const SRC = 'packages/runtime/src';
const scenario = 'sharding';

/** In sharding. */
export const SHARDING_BUGS: readonly Planted[] = [
  {
    name: 'the ledger is written whatever it has become',
    file: `${SRC}/sharding/lease-store.ts`,
    find: 'const metadata = { uid, resourceVersion, annotations: { [SHARD_MAP_ANNOTATION]: text } };',
    replace:
      'void resourceVersion;\n        const metadata = { uid, annotations: { [SHARD_MAP_ANNOTATION]: text } };',
    why: 'a shard is held only after an own write over the very version that was seen',
    scenario,
  },
  {
    name: 'a shard is held though its claim was not written',
    file: `${SRC}/sharding/sharding.ts`,
    find: "if (settled && membership !== undefined && write !== 'blank')",
    replace: "if (membership !== undefined && write !== 'blank')",
    why: 'a shard is held only after an own write over the very version that was seen',
    scenario,
  },
  {
    name: 'a shard is claimed from a member that is there',
    file: `${SRC}/sharding/plan.ts`,
    find: 'const free = owner === undefined || owner === self || isGone(owner);',
    replace: 'void isGone;\n    const free = true;',
    why: 'its owner goes on until he has ended, or his time is up',
    scenario,
  },
  {
    name: 'a member acts though it could not renew its lease',
    file: `${SRC}/sharding/sharding.ts`,
    find: 'const fence = new Fence({ within: this.#election.fence, holds: () => term.holds });',
    replace: 'const fence = new Fence({ holds: () => term.holds });',
    why: 'to the others it is gone when its lease has run out',
    scenario,
  },
  {
    name: 'an owner goes on when the ledger is deleted',
    file: `${SRC}/sharding/sharding.ts`,
    find: "if (typeof shardMap === 'string' || shardMap.length !== shards) return false;",
    replace:
      "if (typeof shardMap === 'string') return true;\n    if (shardMap.length !== shards) return false;",
    why: 'the shards are given out anew when its time has passed',
    scenario,
  },
  {
    name: 'shards are given out anew at once when the ledger is blank',
    file: `${SRC}/sharding/plan.ts`,
    find: "if (shardMap === 'blank' && !blankIsSafe)",
    replace: 'if (false)',
    why: 'all owners must have seen it, or their time be up',
    scenario,
  },
  {
    name: 'a missing owner is counted from when it was first missed',
    file: `${SRC}/sharding/member-observations.ts`,
    find: 'if (this.#missing.get(name)?.version !== version)',
    replace: 'if (!this.#missing.has(name))',
    why: 'who takes his lease anew writes into the ledger before he acts',
    scenario,
  },
  {
    name: 'a look at the leases counts from its request',
    file: `${SRC}/sharding/sharding.ts`,
    find: 'this.#observations.observe(snapshot, world.monotonic());',
    replace: 'this.#observations.observe(snapshot, since.monotonic);',
    why: 'what is seen may have been written after the request',
    scenario,
  },
  {
    name: 'a member whose lease was deleted goes on',
    file: `${SRC}/sharding/sharding.ts`,
    find: "whenDeleted: 'lose',",
    replace: "whenDeleted: 'create',",
    why: 'to the others it is gone',
    scenario,
  },
  {
    name: 'a member acts without having seen the ledger',
    file: `${SRC}/sharding/sharding.ts`,
    find: 'const fence = new Fence({ within: this.#election.fence, holds: () => term.holds });',
    replace: 'const fence = new Fence({ within: this.#election.fence });',
    why: 'a ledger that was deleted or edited by hand stops all owners in time',
    scenario,
  },
  {
    name: 'a shard is given away while work on it is under way',
    file: `${SRC}/sharding/held-shards.ts`,
    find: 'if (entry.inProgress === 0) drained();\n  }\n\n  /** Begins no new work on any',
    replace: 'drained();\n  }\n\n  /** Begins no new work on any',
    why: 'the next would act at the same time',
    scenario,
  },
  {
    name: "a silent member's shards are taken at once",
    file: `${SRC}/sharding/member-observations.ts`,
    find: 'if (member !== undefined) return member.freeIn(this.#now) === 0;',
    replace: 'if (member !== undefined) return member.freeIn(this.#now) < 11_000;',
    why: 'it acts until its time is up',
    scenario,
  },
  {
    name: 'a job is run by every member',
    file: `${SRC}/manager/job.ts`,
    find: 'if (share === undefined || work !== undefined) await',
    replace: 'await',
    why: 'it runs on one replica at a time',
    scenario,
  },
  {
    name: 'who gains a shard does not look at its objects',
    file: `${SRC}/controller/controller.ts`,
    find: 'for (const key of this.#cache.keys()) if (isGained(key)) this.#add(key, { priority: LOW });',
    replace: 'void isGained;',
    why: 'what happened to them while they were others’ is in the cache alone',
    scenario,
  },
];
