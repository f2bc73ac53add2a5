import type { KubeObject } from '@vmwright/testbed';
import { afterAll } from 'vitest';

/**
 * Measures the time from each change until the status of a GPUInfo shows its effect. Prints the times after the last
 * test of the calling file or `describe` block. The tests do not assert these times, because a busy machine can exceed
 * any limit.
 */
export function answerTimes() {
  const times: Record<string, number> = {};
  afterAll(() => console.log('milliseconds from a change to the new status:', JSON.stringify(times)));
  return {
    /** Makes a change and waits for the new status. */
    after: async (
      what: string,
      change: () => Promise<unknown>,
      answer: () => Promise<KubeObject>,
    ): Promise<KubeObject> => {
      const waiting = answer(); // the watch opens before the change
      const started = performance.now();
      await change();
      const answered = await waiting;
      times[what] = Math.round(performance.now() - started);
      return answered;
    },
  };
}
