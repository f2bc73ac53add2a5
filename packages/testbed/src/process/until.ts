import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '@vmwright/core';
import { TestbedError } from '../errors.ts';

const INTERVAL_MS = 50;

export interface UntilOptions {
  /** The expected condition, for the timeout error. */
  readonly what: string;
  /** @default 30_000 */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Polls `check` until it returns something other than `undefined` or `false`. An exception counts as "not yet"; the
 * last one is included in the timeout error. Use it only for conditions without an event to wait on, such as the
 * startup of a server.
 */
export async function until<T>(
  check: () => Promise<T | undefined | false>,
  { what, timeoutMs = 30_000, signal }: UntilOptions,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  do {
    signal?.throwIfAborted();
    try {
      const result = await check();
      if (result !== undefined && result !== false) return result;
    } catch (error) {
      lastError = error;
    }
    await sleep(INTERVAL_MS, undefined, signal === undefined ? {} : { signal });
  } while (performance.now() < deadline);
  const reason = lastError === undefined ? '' : `: ${messageOf(lastError)}`;
  throw new TestbedError(
    'PART_NOT_READY',
    `timed out after ${timeoutMs / 1000} s waiting until ${what}${reason}`,
  );
}
