import type { WorkQueue } from '@vmwright/runtime';
import type { Invariant } from './invariant.ts';

/** @param leaders the queue of the one who leads; others' fill up until it is their turn */
export function emptyQueue(leaders: () => Pick<WorkQueue, 'depth' | 'working'> | undefined): Invariant {
  return {
    name: 'work queue is empty',
    healed: function* () {
      const { depth = 0, working = [] } = leaders() ?? {};
      if (depth + working.length > 0) yield `${depth} wait and ${working.length} are worked on`;
    },
  };
}
