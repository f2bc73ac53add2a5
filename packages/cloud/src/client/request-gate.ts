import { type CloudError, TooManyRequestsError, UnauthorizedError, UnavailableError } from './errors.ts';
import type { CloudWorld } from './world.ts';

/**
 * Time during which a key is not sent again after the cloud has rejected it. Some clouds lock out clients that send a
 * wrong key too often.
 */
const REJECTED_KEY_MS = 1_000;

/**
 * Blocks requests of all callers during a back-off that the cloud has asked for. It is not enough that only the caller
 * with the error response backs off, because the other callers would still send requests.
 *
 * Guarantees: after a 429 or 5xx with Retry-After, nothing is sent until that delay, at most one minute, is over. After a
 * 401, nothing is sent with the same key for one second, but another key is sent immediately.
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
