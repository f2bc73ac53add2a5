import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '@vmwright/core';
import { TestbedError } from '../errors.ts';

const EVERY_MS = 50;

export interface UntilOptions {
  /** What is waited for, as it reads in "… after 30 s". */
  readonly what: string;
  /** @default 30_000 */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Asks again and again until the answer is something other than `undefined` or `false`; what `ask` throws counts as
 * "not yet" and is told if it never comes true. For parts that have no event to wait on, such as a server's start.
 */
export async function until<T>(
  ask: () => Promise<T | undefined | false>,
  { what, timeoutMs = 30_000, signal }: UntilOptions,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let last: unknown;
  do {
    signal?.throwIfAborted();
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      last = error;
    }
    await sleep(EVERY_MS, undefined, signal === undefined ? {} : { signal });
  } while (performance.now() < deadline);
  const why = last === undefined ? '' : `: ${messageOf(last)}`;
  throw new TestbedError('PART_NOT_READY', `${what}: not so after ${timeoutMs / 1000} s${why}`);
}
