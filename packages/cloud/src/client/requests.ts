import { Deadline, jittered, messageOf, type Transport, type TransportRequest, wait } from '@vmwright/core';
import {
  CloudError,
  ConnectionError,
  TooManyRequestsError,
  UnavailableError,
  UnexpectedAnswerError,
} from './errors.ts';
import { errorFrom } from './problem.ts';
import { RequestGate } from './request-gate.ts';
import type { CloudWorld } from './world.ts';

/** Receives the result of each request, for metrics. */
export interface RequestObserver {
  /**
   * @param route path template of the OpenAPI document, such as `/servers/{id}`
   * @param code HTTP status, or `<error>` when no response arrived
   */
  answered(method: string, route: string, code: string, durationMs: number): void;
}

export interface RequestsOptions {
  readonly world: CloudWorld;
  readonly transport: Transport;
  readonly apiKey: () => string;
  readonly userAgent: string;
  readonly observer?: RequestObserver | undefined;
}

export interface OutgoingRequest<T> {
  readonly method: TransportRequest['method'];
  readonly route: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /**
   * Whether the request may be sent twice. If not, it is retried only after a 429: the cloud then did not execute it.
   */
  readonly idempotent: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called right before each attempt. Throws to prevent the attempt. */
  readonly assertLeader?: (() => void) | undefined;
  /** Timeout of one attempt, including its whole response. */
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  /** Maximum size of the response in bytes. @default SERVER_BYTES */
  readonly maxBytes?: number;
  /** Parses the body of a successful response; throws when it has an unexpected shape. */
  readonly parse: (text: string) => T;
}

/** Maximum size of a response with one server, which has up to 64 labels. JSON takes up to six bytes per character. */
const SERVER_BYTES = 1 << 20;
/** Maximum size of a page of up to 1,000 servers. Less than 1,000 × SERVER_BYTES: most servers have few labels. */
export const PAGE_BYTES = 32 << 20;

const FIRST_DELAY_MS = 100;
/** Maximum delay before a retry. With a longer Retry-After the call fails, and the caller backs off. */
const MAX_DELAY_MS = 5_000;

/** Sends requests with the API key and a deadline, and retries those that are safe to retry. */
export class Requests {
  readonly #options: RequestsOptions;
  readonly #gate: RequestGate;

  constructor(options: RequestsOptions) {
    this.#options = options;
    this.#gate = new RequestGate(options.world);
  }

  /**
   * @throws CloudError for an error response
   * @throws ConnectionError if no response arrives
   * @throws any error of `assertLeader` or `apiKey`, or the abort reason of the signal
   */
  async send<T>(outgoing: OutgoingRequest<T>): Promise<T> {
    const { world } = this.#options;
    const { signal, timeoutMs } = outgoing;
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted();
      // The key is read only once per attempt. Errors are redacted with the same value, because a second read may fail.
      const key = this.#options.apiKey();
      const deadline = new Deadline(world, timeoutMs, signal);
      try {
        return await this.#attempt(outgoing, key, deadline);
      } catch (caught) {
        signal?.throwIfAborted();
        // The request is not retried: lost leadership is not regained within this call.
        if (caught instanceof FencedError) throw caught.cause;
        const error =
          caught instanceof CloudError ? caught : connectionError(outgoing, key, deadline, caught);
        const delay =
          attempt < outgoing.maxAttempts ? this.#retryDelay(outgoing.idempotent, error, attempt) : undefined;
        if (delay === undefined) throw error;
        await wait(world, delay, signal);
      } finally {
        deadline.end();
      }
    }
  }

  async #attempt<T>(outgoing: OutgoingRequest<T>, key: string, { signal }: Deadline): Promise<T> {
    const { world, transport, userAgent, observer } = this.#options;
    const { method, route, path, headers, body, parse, maxBytes = SERVER_BYTES } = outgoing;
    const assertMaySend = () => {
      assertFence(outgoing);
      this.#gate.assertOpen(nameOf(outgoing), key);
    };
    const request: TransportRequest = {
      method,
      path,
      headers: {
        accept: 'application/json, application/problem+json',
        authorization: `Bearer ${key}`,
        'user-agent': userAgent,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body }),
      signal,
      beforeSend: assertMaySend,
      maxBytes,
    };
    const started = world.monotonic();
    const report = (code: string) => observer?.answered(method, route, code, world.monotonic() - started);
    assertMaySend(); // `beforeSend` repeats this check, because the request may wait for a connection
    let status = 0;
    let text: string;
    let retryAfter: string | undefined;
    try {
      const response = await transport.request(request);
      status = response.status;
      retryAfter = response.header('retry-after');
      text = await response.text();
    } catch (error) {
      const wasSent = !(error instanceof FencedError || error instanceof CloudError);
      if (wasSent) report('<error>');
      if (!isTooLarge(error)) throw error;
      // This error is not retryable, because the response to a retry would be just as large.
      throw new UnexpectedAnswerError(redactKey(`${nameOf(outgoing)}: ${messageOf(error)}`, key), {
        status,
      });
    }
    report(String(status));
    if (status < 200 || status > 299) {
      const response = { status, body: text, retryAfter };
      const error = errorFrom(nameOf(outgoing), response, world.now(), (part) => redactKey(part, key));
      this.#gate.recordError(error, key);
      throw error;
    }
    try {
      return parse(text);
    } catch (error) {
      const message = redactKey(`${nameOf(outgoing)}: ${messageOf(error)}`, key);
      throw new UnexpectedAnswerError(message, { status });
    }
  }

  /** Returns the delay before the next attempt in ms, or undefined if the request must not be retried. */
  #retryDelay(idempotent: boolean, error: CloudError | ConnectionError, attempt: number): number | undefined {
    if (!(error instanceof TooManyRequestsError || (idempotent && error.retryable))) return undefined;
    const mayCarryRetryAfter = error instanceof TooManyRequestsError || error instanceof UnavailableError;
    const retryAfter = mayCarryRetryAfter ? (error.retryAfterMs ?? 0) : 0;
    // The jittered back-off is added to Retry-After: otherwise all clients would come back at the same moment.
    const delay = retryAfter + jittered(this.#options.world, FIRST_DELAY_MS * 2 ** (attempt - 1));
    return delay > MAX_DELAY_MS ? undefined : delay;
  }
}

/** Wraps an error that `assertLeader` has thrown, to distinguish that error from network errors. */
class FencedError extends Error {}

function assertFence({ assertLeader }: OutgoingRequest<unknown>): void {
  try {
    assertLeader?.();
  } catch (cause) {
    throw new FencedError('fenced', { cause });
  }
}

function connectionError(
  outgoing: OutgoingRequest<unknown>,
  key: string,
  { passed }: Deadline,
  cause: unknown,
): ConnectionError {
  const why = passed ? `no response within ${outgoing.timeoutMs / 1000} s` : redactKey(messageOf(cause), key);
  const effect = outgoing.method === 'GET' ? '' : '; it is unknown whether the cloud executed the request';
  // The error has no `cause`: a transport may attach the request's headers, and with them the API key, to its errors.
  return new ConnectionError(`${nameOf(outgoing)}: ${why}${effect}`);
}

function redactKey(text: string, key: string): string {
  if (key === '') return text;
  const inJson = JSON.stringify(key).slice(1, -1);
  return text.replaceAll(key, '[redacted]').replaceAll(inJson, '[redacted]');
}

/** Names a request in errors, without its query, which may be long. */
function nameOf({ method, path }: OutgoingRequest<unknown>): string {
  return `${method} ${path.split('?', 1)[0]}`;
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'RESPONSE_TOO_LARGE';
}
