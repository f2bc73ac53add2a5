import { type CloudError, TooManyRequestsError, UnauthorizedError, UnavailableError } from './errors.ts';
import type { CloudWorld } from './world.ts';

/**
 * Time during which a key is not sent again after the cloud has rejected it. Some clouds lock out clients that send a
 * wrong key too often.
 */
const REJECTED_KEY_MS = 1_000;

/**
 * Blocks the requests of all callers during a back-off that the cloud has asked for. Without the gate, only the caller
 * that received the error response would back off.
 *
 * Guarantees: after a 429 or 5xx with Retry-After, no request is sent until that delay is over. The delay is at most
 * one minute. After a 401, the rejected key is not sent for one second. Another key may be sent immediately.
 */
export class RequestGate {
  readonly #world: Pick<CloudWorld, 'monotonic'>;
  /** End of the back-off, on the monotonic clock. */
  #closedUntil = 0;
  #rejected: { readonly key: string; readonly until: number; readonly detail: string } | undefined;

  constructor(world: Pick<CloudWorld, 'monotonic'>) {
    this.#world = world;
  }

  /** Records the error response to a request that was sent with this key. */
  recordError(error: CloudError, key: string): void {
    const now = this.#world.monotonic();
    if (error instanceof UnauthorizedError)
      this.#rejected = { key, until: now + REJECTED_KEY_MS, detail: error.detail };
    const mayCarryRetryAfter = error instanceof TooManyRequestsError || error instanceof UnavailableError;
    const ms = mayCarryRetryAfter ? (error.retryAfterMs ?? 0) : 0;
    // Concurrent requests may receive different values: the longest one wins.
    this.#closedUntil = Math.max(this.#closedUntil, now + ms);
  }

  /** @throws TooManyRequestsError during a back-off, UnauthorizedError if the cloud rejected this key a moment ago */
  assertOpen(what: string, key: string): void {
    const now = this.#world.monotonic();
    if (this.#closedUntil > now) {
      const detail = 'not sent: the cloud asked to back off (Retry-After)';
      const retryAfterMs = this.#closedUntil - now;
      throw new TooManyRequestsError(`${what}: ${detail}`, { status: 429, detail, retryAfterMs });
    }
    if (this.#rejected?.key !== key || this.#rejected.until <= now) return;
    const { detail } = this.#rejected;
    throw new UnauthorizedError(`${what}: not sent: the cloud just rejected this API key: ${detail}`, {
      status: 401,
      detail,
    });
  }
}
