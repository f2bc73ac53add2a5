import {
  Deadline,
  jittered,
  messageOf,
  ResponseTooLargeError,
  type Transport,
  type TransportRequest,
  type TransportResponse,
  unlessAborted,
  type World,
  wait,
} from '@vmwright/core';
import { AccessError } from '../access/access.ts';
import type { Credentials } from '../access/credentials.ts';
import { ApiError, ConnectionError, TooManyRequestsError, UnauthorizedError } from './errors.ts';
import { errorFrom } from './status.ts';

/** Observes requests, for metrics and logs. */
export interface RequestObserver {
  /**
   * Called after each attempt, in the async context of the request.
   * @param code the HTTP status, or `<error>` if no response arrived
   * @param path path and query of the request
   */
  answered(method: string, code: string, durationMs: number, path: string): void;
  /** Called with each warning of the API server: a deprecated version, an unknown field. */
  warned?(text: string): void;
}

export interface RequestsOptions {
  readonly world: World;
  readonly transport: Transport;
  readonly credentials: Credentials;
  readonly userAgent: string;
  readonly observer?: RequestObserver | undefined;
}

/** A request to the API server. */
export interface ApiRequest {
  readonly method: TransportRequest['method'];
  readonly path: string;
  readonly body?: string;
  readonly contentType?: string;
  /** @default 'application/json' */
  readonly accept?: string | undefined;
  /**
   * Whether the request may be executed twice. If not, it is retried only after a 429, which means that the server did
   * not execute it.
   */
  readonly idempotent: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called right before each attempt is sent; throws when the request must not be sent. */
  readonly assertLeader?: (() => void) | undefined;
  /**
   * Timeout of one attempt in milliseconds. It applies to the whole response or, for `lines`, only until the response
   * begins.
   */
  readonly timeoutMs: number;
  /** Maximum size of the response, or of one of its lines, in bytes. @default OBJECT_BYTES */
  readonly maxBytes?: number | undefined;
}

/**
 * Maximum size of a response with one object, and of one watch event. The API server accepts objects of up to 3 MiB and
 * returns them with defaults and managed fields.
 */
const OBJECT_BYTES = 16 << 20;
/**
 * Maximum size of a page of a list. A list without `limit` is a single page. The maximum suffices for 100,000 objects
 * of 2.5 KB each.
 */
export const PAGE_BYTES = 256 << 20;

const MAX_ATTEMPTS = 4;
const FIRST_DELAY_MS = 50;
/**
 * Maximum delay before a retry, in milliseconds. With a longer Retry-After the request fails, and the caller backs off.
 */
const MAX_DELAY_MS = 5_000;

/** Sends requests with credentials and a deadline, and retries them where that is safe. */
export class Requests {
  readonly #options: RequestsOptions;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /**
   * Returns the whole response.
   * @throws ApiError for an unsuccessful response, ConnectionError if no response arrives, AccessError if the
   *   credentials are not available
   */
  text(outgoing: ApiRequest): Promise<string> {
    return this.#send(outgoing, async (deadline, authorization) => {
      const response = await this.#open(outgoing, deadline, authorization);
      const text = await response.text();
      deadline.end();
      return text;
    });
  }

  /** Returns the lines of a response as they arrive. The timeout applies only until the response begins. */
  lines(outgoing: ApiRequest): Promise<AsyncIterable<string>> {
    return this.#send(outgoing, async (deadline, authorization) => {
      const response = await this.#open(outgoing, deadline, authorization, true);
      deadline.lift();
      return endDeadlineAfter(response.lines(), deadline);
    });
  }

  async #send<T>(
    outgoing: ApiRequest,
    attempt: (deadline: Deadline, authorization: string | undefined) => Promise<T>,
  ): Promise<T> {
    const { world, credentials } = this.#options;
    const { signal, timeoutMs } = outgoing;
    let renewed = false;
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      const deadline = new Deadline(world, timeoutMs, signal);
      let authorization: string | undefined;
      try {
        const given = credentials.authorization();
        authorization = given instanceof Promise ? await unlessAborted(given, deadline.signal) : given;
        return await attempt(deadline, authorization);
      } catch (caught) {
        deadline.end();
        signal?.throwIfAborted();
        // Nothing was sent, and a retry would fail again: this process may no longer write, or the credentials are not
        // available.
        if (caught instanceof FenceClosed) throw caught.cause;
        if (caught instanceof AccessError) throw caught;
        const error = caught instanceof ApiError ? caught : connectionErrorOf(outgoing, deadline, caught);
        // Renew the credentials once: the token may have expired since it was fetched.
        if (error instanceof UnauthorizedError && !renewed) {
          renewed = true;
          if (await unlessAborted(credentials.renew(authorization), signal)) continue;
        }
        const delay = this.#delayBeforeNext(outgoing, error, tries);
        if (delay === undefined) throw error;
        await wait(world, delay, signal);
      }
    }
  }

  #delayBeforeNext({ idempotent }: ApiRequest, error: unknown, tries: number): number | undefined {
    if (tries >= MAX_ATTEMPTS) return undefined;
    const retryable = error instanceof TooManyRequestsError || (idempotent && isRetryable(error));
    if (!retryable) return undefined;
    const requested = error instanceof TooManyRequestsError ? error.retryAfterMs : undefined;
    const backoff = jittered(this.#options.world, FIRST_DELAY_MS * 2 ** (tries - 1));
    const delay = Math.max(requested ?? 0, backoff);
    return delay > MAX_DELAY_MS ? undefined : delay;
  }

  async #open(
    outgoing: ApiRequest,
    deadline: Deadline,
    authorization: string | undefined,
    lasting = false,
  ): Promise<TransportResponse> {
    const { world, transport, userAgent, observer } = this.#options;
    const {
      method,
      path,
      body,
      contentType,
      accept = 'application/json',
      maxBytes = OBJECT_BYTES,
    } = outgoing;
    const started = world.monotonic();
    const observe = (code: string) => observer?.answered(method, code, world.monotonic() - started, path);
    const headers = {
      accept,
      'user-agent': userAgent,
      ...(authorization !== undefined && { authorization }),
      ...(contentType !== undefined && { 'content-type': contentType }),
    };
    const { signal } = deadline;
    const request = {
      method,
      path,
      headers,
      signal,
      lasting,
      maxBytes,
      ...(body !== undefined && { body }),
      ...(outgoing.assertLeader && { beforeSend: () => assertLeading(outgoing) }),
    };
    assertLeading(outgoing); // `beforeSend` repeats this check, because the request may wait for a connection
    const response = await transport.request(request).catch((error) => {
      observe('<error>');
      throw error;
    });
    observe(String(response.status));
    const warning = response.header('warning');
    if (warning !== undefined) for (const text of parseWarnings(warning)) observer?.warned?.(text);
    if (response.status < 300) return response;
    // The credentials are redacted, because a proxy's error page may echo the request's headers.
    const text = redact(authorization, await response.text());
    throw errorFrom(describe(outgoing), response.status, text, response.header('retry-after'));
  }
}

/** Replaces the secret of an Authorization header (`Bearer …`, `Basic …`) in a text. */
function redact(authorization: string | undefined, text: string): string {
  const secret = authorization?.slice(authorization.indexOf(' ') + 1) ?? '';
  return secret === '' ? text : text.replaceAll(secret, '[redacted]');
}

/** Yields the lines, then ends the deadline, which removes its listener from the caller's long-lived signal. */
async function* endDeadlineAfter(
  lines: AsyncIterable<string>,
  deadline: Deadline,
): AsyncGenerator<string, void, undefined> {
  try {
    yield* lines;
  } finally {
    deadline.end();
  }
}

/** Wraps an error of `assertLeader`, to distinguish it from network errors. */
class FenceClosed extends Error {}

function assertLeading({ assertLeader }: ApiRequest): void {
  try {
    assertLeader?.();
  } catch (cause) {
    throw new FenceClosed('not the leader', { cause });
  }
}

function connectionErrorOf(
  outgoing: ApiRequest,
  { passed }: Deadline,
  cause: unknown,
): ConnectionError | ResponseTooLargeError {
  if (cause instanceof ResponseTooLargeError)
    return new ResponseTooLargeError(cause.limit, `${describe(outgoing)}: the response`);
  const why = passed ? `no response within ${outgoing.timeoutMs / 1000} s` : messageOf(cause);
  return new ConnectionError(`${describe(outgoing)}: ${why}`, { cause });
}

/** Names a request in errors, without the query, which may be long. */
function describe({ method, path }: ApiRequest): string {
  return `${method} ${path.split('?', 1)[0]}`;
}

function isRetryable(error: unknown): boolean {
  return error instanceof Error && 'retryable' in error && error.retryable === true;
}

/** Parses a Warning header: `299 - "text"`, separated by commas. */
function* parseWarnings(header: string): Generator<string, void, undefined> {
  for (const [, text = ''] of header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g))
    yield text.replace(/\\(.)/g, '$1');
}
