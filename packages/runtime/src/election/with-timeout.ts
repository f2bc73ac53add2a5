import type { Clock } from '@vmwright/core';
import type { CallOptions } from '../client/options.ts';
import { ElectionTimeoutError } from './errors.ts';

export interface WithTimeoutOptions {
  readonly clock: Clock;
  /** Name of the lease in errors. */
  readonly lease: string;
  readonly callMs: number;
}

/**
 * Runs `call` with a timeout. The timeout applies even if the client ignores its signal, for example because an exec
 * plugin hangs. A response after the timeout is ignored.
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
