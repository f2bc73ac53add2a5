import type { WorkQueue } from '@vmwright/runtime';
import type { Invariant } from './invariant.ts';

/** @param leaders returns the leader's queue. Standbys are not checked, because their queues fill up until they lead */
export function emptyQueue(leaders: () => Pick<WorkQueue, 'depth' | 'working'> | undefined): Invariant {
  return {
    name: 'work queue is empty',
    healed: function* () {
      const { depth = 0, working = [] } = leaders() ?? {};
      if (depth + working.length > 0)
        yield `${depth} keys are queued and ${working.length} are being processed`;
    },
  };
}
