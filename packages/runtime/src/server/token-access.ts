import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Clock, type Logger, messageOf } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import { isRecord } from '../client/record.ts';
import { SubjectAccessReview, TokenReview } from '../kind/builtin/reviews.ts';
import { RequestError } from './answer.ts';

export interface TokenAccessOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly client: Pick<Client, 'review'>;
  readonly logger: Logger;
}

/** What the API server has said about a token and a path; undefined: access is granted. */
type Verdict = RequestError | undefined;

interface Known {
  readonly verdict: Promise<Verdict>;
  /** By the monotonic clock; undefined while the API server is being asked. */
  until: number | undefined;
}

/** How long a granted verdict is cached. A revoked token or role works for up to this long. */
const GRANTED_MS = 60_000;
/** How long a denial is cached. */
const DENIED_MS = 10_000;
/** For both questions to the API server. */
const REVIEW_TIMEOUT_MS = 10_000;
/** Maximum number of verdicts that are remembered. */
const MAX_KNOWN = 1_000;
/**
 * Maximum number of tokens that are checked at a time. Half of the client's connections: anonymous clients with made-up
 * tokens must not hold up the requests of reconciles, which use the same ones.
 */
const MAX_REVIEWS = 4;
/** Longer ones are no tokens: a service account's has about 1 KB. */
const MAX_TOKEN_LENGTH = 8_192;

const CHALLENGE = { 'www-authenticate': 'Bearer' };

/**
 * Lets clients in by a Kubernetes bearer token, as controller-runtime's secure metrics do.
 *
 * Flow: TokenReview says whose token it is → SubjectAccessReview says whether that user may `get` or `put` the path (RBAC:
 * `nonResourceURLs`). A verdict is remembered for a minute if access is granted, and for ten seconds if not.
 *
 * Guarantees: without a verdict of the API server nobody is let in; tokens are neither kept (only their hash) nor logged.
 */
export class TokenAccess {
  readonly #options: TokenAccessOptions;
  readonly #known = new Map<string, Known>();
  #reviews = 0;

  constructor(options: TokenAccessOptions) {
    this.#options = options;
  }

  /** @throws RequestError 401 if the token is missing or invalid, 403 if RBAC denies, 503 if the API server cannot be asked */
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
    const known = this.#known.get(key);
    const now = this.#options.clock.monotonic();
    if (known !== undefined && (known.until === undefined || now < known.until)) return known.verdict;
    if (this.#reviews >= MAX_REVIEWS)
      throw new RequestError(503, 'too many tokens are being checked; try again\n');
    const asked: Known = { verdict: this.#ask(token, verb, path), until: undefined };
    this.#remember(key, asked);
    asked.verdict.then(
      (verdict) => {
        const ms = verdict === undefined ? GRANTED_MS : DENIED_MS;
        asked.until = this.#options.clock.monotonic() + ms;
      },
      () => {
        if (this.#known.get(key) === asked) this.#known.delete(key);
      },
    );
    return asked.verdict;
  }

  #remember(key: string, known: Known): void {
    this.#known.delete(key);
    this.#known.set(key, known);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_KNOWN) return;
      this.#known.delete(oldest);
    }
  }

  async #ask(token: string, verb: string, path: string): Promise<Verdict> {
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
        `${username} may not ${verb} ${path}; a ClusterRole with this path in nonResourceURLs allows it\n`,
      );
    } catch (error) {
      logger.warn({ path, error: messageOf(error) }, 'Checking a token with the API server failed');
      throw new RequestError(503, 'the API server could not be asked about the token; try again\n');
    } finally {
      this.#reviews -= 1;
    }
  }
}
