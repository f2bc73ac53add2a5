import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Clock, type Logger, messageOf } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import { isRecord } from '../client/record.ts';
import { SubjectAccessReview, TokenReview } from '../kind/builtin/reviews.ts';
import { RequestError } from './http-response.ts';

export interface TokenAccessOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly client: Pick<Client, 'review'>;
  readonly logger: Logger;
}

/** Result of reviewing a token and a path: the error that denies the request; undefined if access is granted. */
type Verdict = RequestError | undefined;

interface CachedVerdict {
  readonly verdict: Promise<Verdict>;
  /** Time of expiry on the monotonic clock; undefined while the review is pending. */
  until: number | undefined;
}

/** Time for which a granted verdict is cached. A revoked token or role works for up to this long. */
const GRANTED_MS = 60_000;
/** Time for which a denial is cached. */
const DENIED_MS = 10_000;
/** Timeout of each review request. */
const REVIEW_TIMEOUT_MS = 10_000;
/** Maximum number of cached verdicts. */
const MAX_CACHED = 1_000;
/**
 * Maximum number of concurrent reviews: half of the client's connections. The other half stays free for reconciles,
 * even if anonymous clients send many invalid tokens.
 */
const MAX_REVIEWS = 4;
/** Maximum length of a token. Longer tokens are rejected without a review; a service account token has about 1 KB. */
const MAX_TOKEN_LENGTH = 8_192;

const CHALLENGE = { 'www-authenticate': 'Bearer' };

/**
 * Authenticates and authorizes requests by a Kubernetes bearer token, like controller-runtime's secure metrics.
 *
 * Flow: a TokenReview returns the user of the token. A SubjectAccessReview then checks whether that user may `get` or
 * `put` the path (RBAC: `nonResourceURLs`). An approval is cached for a minute, a denial for ten seconds.
 *
 * Guarantees: access requires a verdict of the API server. Tokens are never logged, and only their hashes are stored.
 */
export class TokenAccess {
  readonly #options: TokenAccessOptions;
  readonly #cache = new Map<string, CachedVerdict>();
  #reviews = 0;

  constructor(options: TokenAccessOptions) {
    this.#options = options;
  }

  /** @throws RequestError 401 if the token is missing or invalid, 403 if RBAC denies access, 503 if the review fails */
  async assert(request: IncomingMessage, path: string): Promise<void> {
    const [, token] = /^bearer +([\x21-\x7e]+) *$/i.exec(request.headers.authorization ?? '') ?? [];
    if (token === undefined || token.length > MAX_TOKEN_LENGTH)
      throw new RequestError(401, 'a bearer token is required\n', CHALLENGE);
    const verb =
      request.method === 'GET' || request.method === 'HEAD' ? 'get' : (request.method ?? '').toLowerCase();
    const verdict = await this.#verdict(token, verb, path);
    if (verdict !== undefined) throw verdict;
  }

  #verdict(token: string, verb: string, path: string): Promise<Verdict> {
    const key = [createHash('sha256').update(token).digest('hex'), verb, path].join(' ');
    const cached = this.#cache.get(key);
    const now = this.#options.clock.monotonic();
    if (cached !== undefined && (cached.until === undefined || now < cached.until)) return cached.verdict;
    if (this.#reviews >= MAX_REVIEWS)
      throw new RequestError(503, 'too many tokens are being checked; try again\n');
    const pending: CachedVerdict = { verdict: this.#review(token, verb, path), until: undefined };
    this.#store(key, pending);
    pending.verdict.then(
      (verdict) => {
        const ms = verdict === undefined ? GRANTED_MS : DENIED_MS;
        pending.until = this.#options.clock.monotonic() + ms;
      },
      () => {
        if (this.#cache.get(key) === pending) this.#cache.delete(key);
      },
    );
    return pending.verdict;
  }

  #store(key: string, verdict: CachedVerdict): void {
    this.#cache.delete(key);
    this.#cache.set(key, verdict);
    for (const oldest of this.#cache.keys()) {
      if (this.#cache.size <= MAX_CACHED) return;
      this.#cache.delete(oldest);
    }
  }

  async #review(token: string, verb: string, path: string): Promise<Verdict> {
    const { client, logger } = this.#options;
    this.#reviews += 1;
    try {
      const { authenticated, user } = await client.review(
        TokenReview,
        { token },
        { timeoutMs: REVIEW_TIMEOUT_MS },
      );
      if (authenticated !== true || !isRecord(user) || typeof user.username !== 'string')
        return new RequestError(401, 'the token is not accepted\n', CHALLENGE);
      const { username, uid, groups, extra } = user;
      const spec = { user: username, uid, groups, extra, nonResourceAttributes: { path, verb } };
      const { allowed } = await client.review(SubjectAccessReview, spec, { timeoutMs: REVIEW_TIMEOUT_MS });
      if (allowed === true) return undefined;
      return new RequestError(
        403,
        `${username} may not ${verb} ${path}; to allow it, bind a ClusterRole with this path in nonResourceURLs\n`,
      );
    } catch (error) {
      logger.warn({ path, error: messageOf(error) }, 'Checking a token with the API server failed');
      throw new RequestError(503, 'the token could not be checked with the API server; try again\n');
    } finally {
      this.#reviews -= 1;
    }
  }
}
