import type { Mutant } from '../mutants/mutant.ts';

const MIRROR = 'packages/operator/src/mirror';
const scenario = 'mirror';

/** Mutants of the status mirror. */
export const MIRROR_MUTANTS: readonly Mutant[] = [
  {
    name: 'mirror continues although it lost leadership while it acquired the fence',
    file: `${MIRROR}/term.ts`,
    find: 'this.#assertLeader(); this.#acquired = shards;',
    replace: 'this.#acquired = shards;',
    why: 'a deposed leader must not keep the fence from its successor',
    scenario,
  },
  {
    name: 'new leader of the mirror does not list the VMs again',
    file: `${MIRROR}/comparison.ts`,
    find: 'if (isStale) { await refresh();',
    replace: 'if (isStale) {',
    why: 'its cache may be older than what the previous leader has written',
    scenario,
  },
  {
    name: 'table is read before the fence is acquired',
    file: `${MIRROR}/term.ts`,
    find: `await session.acquire([...shards], takesOver, signal);
    this.#assertLeader();
    this.#acquired = shards;
    await this.#compare(session, 'start', signal);`,
    replace: `await this.#compare(session, 'start', signal);
    await session.acquire([...shards], takesOver, signal);
    this.#assertLeader();
    this.#acquired = shards;
    this.#compared = shards;`,
    why: 'the previous leader may write until the fence is acquired',
    scenario,
  },
  {
    name: 'batch is written without a check of the fence',
    file: 'packages/simulation/src/database/server.ts',
    find: 'if (!this.#holds(session, guard)) {',
    replace: 'if (!this.#holds(session, guard) && guard.shards.length === 0) {',
    why: 'a batch of a deposed leader may arrive after its successor has read the table',
    scenario,
  },
  {
    name: 're-created VM is confused with its predecessor',
    file: `${MIRROR}/plan.ts`,
    find: 'binding !== undefined && binding.uid !== vm?.metadata.uid;',
    replace: 'binding !== undefined && vm === undefined;',
    why: 'the row of a deleted VM must not show a new one that gets a row of its own',
    scenario,
  },
  {
    name: 'failure of a session drops the keys of its batch',
    file: `${MIRROR}/term.ts`,
    find: 'if (!isMirrored) this.#queue.add(key);',
    replace: '',
    why: 'the changes would stay pending forever',
    scenario,
  },
  {
    name: 'transient Stopped is written at once',
    file: `${MIRROR}/mapping.ts`,
    find: "return state === 'Stopped' && shouldRun(vm);",
    replace: "return state === 'Deleted' && shouldRun(vm);",
    why: 'KubeVirt reports Stopped for a moment when a VM starts',
    scenario,
  },
  {
    name: 'rows whose VM is gone are ignored when the table is compared',
    file: `${MIRROR}/comparison.ts`,
    find: 'if (known.has(row.id) && owns(vmKey(row)) && vmRows.isOrphaned(row)) different.push(rowKey(row));',
    replace: '',
    why: 'VMs may be deleted while no replica runs',
    scenario,
  },
  {
    name: 'row that could not be written is not retried',
    file: `${MIRROR}/term.ts`,
    find: 'this.#queue.retry(key);',
    replace: '',
    why: 'a lock or a constraint may be gone later',
    scenario,
  },
  {
    name: 'locked row is treated as written',
    file: `${MIRROR}/term.ts`,
    find: "if (result.type === 'skipped') skipped.push(write);",
    replace: "if (result.type === 'skipped') this.#onCommitted(write, true);",
    why: 'a batch skips rows that another transaction has locked',
    scenario,
  },
  {
    name: 'soft-deleted row is written again and again',
    file: `${MIRROR}/term.ts`,
    find: 'this.#vmRows.gone(write.key, write.row);',
    replace: '',
    why: 'a row that does not exist any more is forgotten',
    scenario,
  },
  {
    name: 'row that is inserted after its VM is not searched for',
    file: `${MIRROR}/term.ts`,
    find: 'await this.#searchUnmatched(session);',
    replace: '',
    why: 'it would be found by the next resync only',
    scenario,
  },
  {
    name: 'row of a predecessor is taken over without a last search',
    file: `${MIRROR}/term.ts`,
    find: 'this.#needsSearch(key) || this.#vmRows.isWaiting(key)',
    replace: 'this.#needsSearch(key)',
    why: 'the row of the new VM may have been inserted since the last search',
    scenario,
  },
  {
    name: 'oldest of several rows is updated',
    file: `${MIRROR}/rows.ts`,
    find: 'a.createdAt > b.createdAt;',
    replace: 'a.createdAt < b.createdAt;',
    why: 'the newest row describes the VM that exists',
    scenario,
  },
  {
    name: 'older rows of a name are left as they are',
    file: `${MIRROR}/plan.ts`,
    find: '...predecessor, ...older.filter((each) => isMirrored(each, mapping))',
    replace: '...predecessor',
    why: 'an older row shows a VM that was deleted',
    scenario,
  },
  {
    name: 'statement without an answer delays the end of a term',
    file: `${MIRROR}/database-link.ts`,
    find: 'await unlessAborted(prepare(session, signal), signal);',
    replace: 'await prepare(session, signal);',
    why: 'a replica that lost leadership would exit instead of standing by',
    scenario,
  },
  {
    name: 'new row waits for its VM by the wall clock',
    file: `${MIRROR}/vm-rows.ts`,
    find: 'Math.max(world.now() - row.createdAt, this.#waitedMs(key, undefined))',
    replace: 'world.now() - row.createdAt',
    why: 'with a clock that is an hour behind, the row would be wrong for an hour',
    scenario,
  },
  {
    name: 'refreshed cache brings deleted objects back',
    file: 'packages/runtime/src/cache/cache.ts',
    find: 'since the page was sent. if (this.#accepts(key, object))',
    replace: 'since the page was sent.\n',
    why: 'a list may be older than what the watch has reported',
    scenario,
  },
];
