import type { Clock } from '@vmwright/core';
import type { CallOptions } from '../client/options.ts';
import { ElectionTimeoutError } from './errors.ts';

export interface WithTimeoutOptions {
  readonly clock: Clock;
  /** As it reads in errors. */
  readonly lease: string;
  readonly callMs: number;
}

/**
 * Gives up on time even if the client does not: its credentials may come from a program that hangs. A late answer is
 * then as good as none.
 */
export async function withTimeout<T>(
  { clock, lease, callMs }: WithTimeoutOptions,
  signal: AbortSignal | undefined,
  call: (options: CallOptions) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const giveUp = new AbortController();
  const { promise: givenUp, reject } = Promise.withResolvers<never>();
  const stop = (reason: unknown) => {
    giveUp.abort(reason);
    reject(reason);
  };
  const follow = () => stop(signal?.reason);
  signal?.addEventListener('abort', follow, { once: true });
  const timer = clock.after(callMs, () => stop(new ElectionTimeoutError(lease, callMs)));
  try {
    return await Promise.race([call({ signal: giveUp.signal }), givenUp]);
  } finally {
    timer.cancel();
    signal?.removeEventListener('abort', follow);
  }
}
