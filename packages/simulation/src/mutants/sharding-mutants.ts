import type { Mutant } from './mutant.ts';

const SRC = 'packages/runtime/src';
const scenario = 'sharding';

/** Mutants of the runtime's sharding. */
export const SHARDING_MUTANTS: readonly Mutant[] = [
  {
    name: 'shard map is written without a resourceVersion precondition',
    file: `${SRC}/sharding/lease-store.ts`,
    find: 'const metadata = { uid, resourceVersion, annotations: { [SHARD_MAP_ANNOTATION]: text } };',
    replace:
      'void resourceVersion;\n        const metadata = { uid, annotations: { [SHARD_MAP_ANNOTATION]: text } };',
    why: 'a member holds a shard only after it has replaced exactly the version of the shard map that it read',
    scenario,
  },
  {
    name: 'shard is held although its claim was not written',
    file: `${SRC}/sharding/sharding.ts`,
    find: "if (settled && membership !== undefined && write !== 'blank')",
    replace: "if (membership !== undefined && write !== 'blank')",
    why: 'a member holds a shard only after it has written its claim to the shard map',
    scenario,
  },
  {
    name: 'shard is claimed from a live member',
    file: `${SRC}/sharding/plan.ts`,
    find: 'const free = owner === undefined || owner === self || isGone(owner);',
    replace: 'void isGone;\n    const free = true;',
    why: 'the owner continues until it has drained the shard, or until its deadline',
    scenario,
  },
  {
    name: 'member acts although it could not renew its lease',
    file: `${SRC}/sharding/sharding.ts`,
    find: 'renewMs, within: this.#election.fence, });',
    replace: 'renewMs });',
    why: 'other members consider a member gone when its lease expires',
    scenario,
  },
  {
    name: 'owner continues after the shard map is deleted',
    file: `${SRC}/sharding/sharding.ts`,
    find: "if (typeof shardMap === 'string' || shardMap.length !== shards) return false;",
    replace:
      "if (typeof shardMap === 'string') return true;\n    if (shardMap.length !== shards) return false;",
    why: 'once the map is deleted, other members claim the shards after the deadline of their owners',
    scenario,
  },
  {
    name: 'shards are reassigned at once when the shard map is empty',
    file: `${SRC}/sharding/plan.ts`,
    find: "if (shardMap === 'blank' && !blankIsSafe)",
    replace: 'if (false)',
    why: 'before a reassignment, all owners must have seen the empty map or be past their deadline',
    scenario,
  },
  {
    name: 'change of the shard map does not reset the timer of a missing owner',
    file: `${SRC}/sharding/member-observations.ts`,
    find: 'if (this.#missing.get(name)?.version !== version)',
    replace: 'if (!this.#missing.has(name))',
    why: 'a member that acquires its lease again writes the shard map before it acts',
    scenario,
  },
  {
    name: 'lease observation counts from the request',
    file: `${SRC}/sharding/sharding.ts`,
    find: 'this.#observations.observe(snapshot, world.monotonic());',
    replace: 'this.#observations.observe(snapshot, since.monotonic);',
    why: 'an observed lease may have been written after the request was sent',
    scenario,
  },
  {
    name: 'member continues after its lease is deleted',
    file: `${SRC}/sharding/sharding.ts`,
    find: "whenDeleted: 'lose',",
    replace: "whenDeleted: 'create',",
    why: 'other members consider a member without a lease gone',
    scenario,
  },
  {
    name: 'member acts without a recent read of the shard map',
    file: `${SRC}/sharding/sharding.ts`,
    find: '(shard) => new Fence({ within: term.fence,',
    replace: '(shard) => new Fence({ within: this.#election.fence,',
    why: 'a manual deletion or edit of the shard map must stop all owners before other members claim their shards',
    scenario,
  },
  {
    name: 'shard is released while its keys are being processed',
    file: `${SRC}/sharding/held-shards.ts`,
    find: 'if (entry.inProgress === 0) drained();',
    replace: 'drained();',
    why: 'otherwise the next owner would act while the previous owner still processes a key',
    scenario,
  },
  {
    name: "silent member's shards are claimed at once",
    file: `${SRC}/sharding/member-observations.ts`,
    find: 'if (member !== undefined) return member.freeIn(this.#now) === 0;',
    replace: 'if (member !== undefined) return member.freeIn(this.#now) < 11_000;',
    why: 'a member whose lease is not renewed may act until its deadline',
    scenario,
  },
  {
    name: 'job runs on every member',
    file: `${SRC}/manager/job.ts`,
    find: 'if (share === undefined || work !== undefined) await',
    replace: 'await',
    why: 'a job runs on one replica at a time',
    scenario,
  },
  {
    name: 'new owner of a shard does not enqueue its objects',
    file: `${SRC}/controller/controller.ts`,
    find: 'for (const key of this.#cache.keys()) if (isGained(key)) this.#add(key, { priority: LOW });',
    replace: 'void isGained;',
    why: 'changes that happened under another owner are only in the cache',
    scenario,
  },
];
