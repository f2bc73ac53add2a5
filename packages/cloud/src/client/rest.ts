import { type CloudError, TooManyRequestsError, UnauthorizedError, UnavailableError } from './errors.ts';
import type { CloudWorld } from './world.ts';

/** Some clouds lock out who comes with a wrong key too often. */
const AFTER_WRONG_KEY_MS = 1_000;

/**
 * Leaves the cloud alone, on behalf of all callers: one who is sent away does not know of the others, who would come in
 * his place at once.
 *
 * Guarantees: after an answer with Retry-After nothing is sent before that time; after a 401 nothing with the same key
 * for a second, but with another at once.
 */
export class Rest {
  readonly #world: Pick<CloudWorld, 'monotonic'>;
  /** On the monotonic clock. */
  #until = 0;
  #wrong: { readonly key: string; readonly until: number; readonly detail: string } | undefined;

  constructor(world: Pick<CloudWorld, 'monotonic'>) {
    this.#world = world;
  }

  /** Takes in what was answered to a request with this key. */
  after(error: CloudError, key: string): void {
    const now = this.#world.monotonic();
    if (error instanceof UnauthorizedError)
      this.#wrong = { key, until: now + AFTER_WRONG_KEY_MS, detail: error.detail };
    const asks = error instanceof TooManyRequestsError || error instanceof UnavailableError;
    const ms = asks ? (error.retryAfterMs ?? 0) : 0;
    // Of several that were under way at once, the longest is kept.
    this.#until = Math.max(this.#until, now + ms);
  }

  /** @throws TooManyRequestsError, UnauthorizedError: as if the cloud had answered so */
  refuse(what: string, key: string): void {
    const now = this.#world.monotonic();
    if (this.#until > now) {
      const detail = 'the cloud has asked for time, and is left alone until then';
      const retryAfterMs = this.#until - now;
      throw new TooManyRequestsError(`${what}: ${detail}`, { status: 429, detail, retryAfterMs });
    }
    if (this.#wrong?.key !== key || this.#wrong.until <= now) return;
    const { detail } = this.#wrong;
    throw new UnauthorizedError(`${what}: not sent, since this key was refused just now: ${detail}`, {
      status: 401,
      detail,
    });
  }
}
