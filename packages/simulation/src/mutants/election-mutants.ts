import type { Mutant } from './mutant.ts';
import { REOPENED_FENCE } from './reopened-fence.ts';

const SRC = 'packages/runtime/src';
const scenario = 'runtime';

/** Mutants of leader election and of the manager that depends on it. */
export const ELECTION_MUTANTS: readonly Mutant[] = [
  {
    name: 'leader continues after it lost the lease',
    file: `${SRC}/election/leader-election.ts`,
    find: 'leading.abort(term.leadershipLost.reason);',
    replace: '',
    why: 'the work of a leader ends before another replica may start',
    scenario,
  },
  {
    name: 'fence does not check the clock',
    file: `${SRC}/election/term.ts`,
    find: 'return !this.#over && this.#leftMs > 0;',
    replace: 'return !this.#over;',
    why: 'after a pause of the process, its timers fire late, so only the clock shows that the lease has expired',
    scenario,
  },
  {
    name: 'fence reopens when the same process leads again',
    ...REOPENED_FENCE,
    scenario,
  },
  {
    name: "candidate does not wait until another's lease expires",
    file: `${SRC}/election/leader-election.ts`,
    find: 'if (this.#observation.freeIn(world.monotonic()) > 0) return undefined;',
    replace: 'if (this.#observation.freeIn(world.monotonic()) > 10_000) return undefined;',
    why: 'the current holder may act until its deadline',
    scenario,
  },
  {
    name: 'lease time counts from the response instead of the request',
    file: `${SRC}/election/leader-election.ts`,
    find: 'if (!(await this.#lock.write(record, signal))) return undefined;',
    replace:
      'if (!(await this.#lock.write(record, signal))) return undefined;\n    return momentOf(this.#options.world);',
    why: 'other replicas count from the time of the write, which precedes the response',
    scenario,
  },
  {
    name: 'lease is released during a reconcile',
    file: `${SRC}/manager/manager.ts`,
    find: 'await Promise.race([working, grace]);',
    replace: 'await Promise.race([working, stopped]);',
    why: 'otherwise the next leader would act while the reconcile still runs',
    scenario,
  },
  {
    name: 'lease write overwrites a new holder',
    file: `${SRC}/election/lease-lock.ts`,
    find: 'return client.mergePatch(Lease, ref, { metadata: { resourceVersion }, spec }, options);',
    replace: 'void resourceVersion;\n        return client.mergePatch(Lease, ref, { spec }, options);',
    why: 'a write never replaces a record that its writer has not read',
    scenario,
  },
];
