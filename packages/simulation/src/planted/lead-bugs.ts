import { LEADING_NOW } from './leading-now.ts';
import type { Planted } from './planted.ts';

const SRC = 'packages/runtime/src';
const scenario = 'runtime';

/** In the election, and in the manager that rests on it. */
export const LEAD_BUGS: readonly Planted[] = [
  {
    name: 'a leader goes on after it has lost the lease',
    file: `${SRC}/election/leader-election.ts`,
    find: 'leading.abort(term.leadershipLost.reason);',
    replace: '',
    why: 'its work ends before another may begin',
    scenario,
  },
  {
    name: 'the fence does not ask the clock',
    file: `${SRC}/election/term.ts`,
    find: 'return !this.#over && this.#leftMs > 0;',
    replace: 'return !this.#over;',
    why: 'after a stop of the process the timers come late',
    scenario,
  },
  {
    name: 'the fence asks only whether this process leads now',
    ...LEADING_NOW,
    scenario,
  },
  {
    name: "a candidate does not wait out another's lease",
    file: `${SRC}/election/leader-election.ts`,
    find: 'if (this.#observation.freeIn(world.monotonic()) > 0) return undefined;',
    replace: 'if (this.#observation.freeIn(world.monotonic()) > 10_000) return undefined;',
    why: 'the holder acts until its time is up',
    scenario,
  },
  {
    name: "a leader's time counts from the answer",
    file: `${SRC}/election/leader-election.ts`,
    find: 'if (!(await this.#lock.write(record, signal))) return undefined;',
    replace:
      'if (!(await this.#lock.write(record, signal))) return undefined;\n    return momentOf(this.#options.world);',
    why: 'the others count from when it was stored, which is before',
    scenario,
  },
  {
    name: 'the lease is given up while a reconcile is under way',
    file: `${SRC}/manager/manager.ts`,
    find: 'await Promise.race([working, grace]);',
    replace: 'await Promise.race([working, stopped]);',
    why: 'its successor would act at the same time',
    scenario,
  },
  {
    name: 'a lease that another has taken is written over',
    file: `${SRC}/election/lease-lock.ts`,
    find: 'return client.mergePatch(Lease, ref, { metadata: { resourceVersion }, spec }, options);',
    replace: 'void resourceVersion;\n        return client.mergePatch(Lease, ref, { spec }, options);',
    why: 'no write goes over a record that its writer has not seen',
    scenario,
  },
];
