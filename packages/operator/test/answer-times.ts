import type { KubeObject } from '@vmwright/testbed';
import { afterAll } from 'vitest';

/**
 * Measures the time from each change until the status of a GPUInfo shows its effect. Prints the times after the last
 * test of the file or `describe` block that calls this function. The tests do not assert these times, because they can
 * exceed any limit on a busy machine.
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
