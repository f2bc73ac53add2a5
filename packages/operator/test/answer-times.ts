import type { KubeObject } from '@vmwright/testbed';
import { afterAll } from 'vitest';

/**
 * Measures the time from changes to the new answers, and prints the times after the tests of the file or block. They are not
 * asserted: a limit on the wall clock fails on a busy machine.
 */
export function answerTimes() {
  const times: Record<string, number> = {};
  afterAll(() => console.log('milliseconds from a change to the new answer:', JSON.stringify(times)));
  return {
    /** Makes a change and waits for the new answer. */
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
