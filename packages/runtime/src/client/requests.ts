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

/** Told of each answer, for metrics. */
export interface RequestObserver {
  /** @param code the HTTP status, or `<error>` where none has come */
  answered(method: string, code: string, durationMs: number): void;
  /** What the server wants people to know: a version that will go, a field that means nothing. */
  warned?(text: string): void;
}

export interface RequestsOptions {
  readonly world: World;
  readonly transport: Transport;
  readonly credentials: Credentials;
  readonly userAgent: string;
  readonly observer?: RequestObserver | undefined;
}

export interface ApiRequest {
  readonly method: TransportRequest['method'];
  readonly path: string;
  readonly body?: string;
  readonly contentType?: string;
  /** @default 'application/json' */
  readonly accept?: string | undefined;
  /**
   * Whether sending it twice does no harm. If not, it is sent again only after an answer that says it was not carried
   * out (429).
   */
  readonly idempotent: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called right before it is sent, each time; throws when it must not be. */
  readonly assertLeader?: (() => void) | undefined;
  /** For the whole answer; for lines, until they begin. */
  readonly timeoutMs: number;
  /** Limit of the answer, or of one of its lines, in bytes. @default OBJECT_BYTES */
  readonly maxBytes?: number | undefined;
}

/**
 * Limit of an answer with one object, and of one event of a watch: the API server accepts objects of up to 3 MiB, and
 * writes them with defaults and managed fields.
 */
const OBJECT_BYTES = 16 << 20;
/** Limit of a page of a list. One without `limit` has all objects: 100,000 of 2.5 KB. */
export const PAGE_BYTES = 256 << 20;

const MAX_ATTEMPTS = 4;
const FIRST_DELAY_MS = 50;
/** Longer than this it is the caller's, whose back-off is made for it. */
const MAX_DELAY_MS = 5_000;

/** Sends requests: with credentials, a deadline, and again where that is safe. */
export class Requests {
  readonly #options: RequestsOptions;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /**
   * The whole answer.
   * @throws ApiError for an answer that is no success, ConnectionError for none, AccessError where we have no
   *   credentials to send it with
   */
  text(outgoing: ApiRequest): Promise<string> {
    return this.#send(outgoing, async (deadline, authorization) => {
      const response = await this.#open(outgoing, deadline, authorization);
      const text = await response.text();
      deadline.end();
      return text;
    });
  }

  /** The lines of an answer as they come, without an end in time but that of `outgoing.signal`. */
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
        // Nothing was sent. Trying again would only run a failing plugin four times, or ask a fence that has closed.
        if (caught instanceof FenceClosed) throw caught.cause;
        if (caught instanceof AccessError) throw caught;
        const error = caught instanceof ApiError ? caught : connectionErrorOf(outgoing, deadline, caught);
        // A token may have expired between two looks at its file.
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
    const asked = error instanceof TooManyRequestsError ? error.retryAfterMs : undefined;
    const own = jittered(this.#options.world, FIRST_DELAY_MS * 2 ** (tries - 1));
    const delay = Math.max(asked ?? 0, own);
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
    const observe = (code: string) => observer?.answered(method, code, world.monotonic() - started);
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
    assertLeading(outgoing); // and again when it has a connection to be sent over: it may wait for one
    const response = await transport.request(request).catch((error) => {
      observe('<error>');
      throw error;
    });
    observe(String(response.status));
    const warning = response.header('warning');
    if (warning !== undefined) for (const text of parseWarnings(warning)) observer?.warned?.(text);
    if (response.status < 300) return response;
    // A proxy's page may repeat what it was sent.
    const said = redact(authorization, await response.text());
    throw errorFrom(describe(outgoing), response.status, said, response.header('retry-after'));
  }
}

/** @param authorization `Bearer …`, `Basic …` */
function redact(authorization: string | undefined, text: string): string {
  const secret = authorization?.slice(authorization.indexOf(' ') + 1) ?? '';
  return secret === '' ? text : text.replaceAll(secret, '[redacted]');
}

/** The lines. At their end the deadline lets go of the caller's signal, which may outlive thousands of watches. */
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

/** Carries what `assertLeader` has thrown past those who tell failures of the network. */
class FenceClosed extends Error {}

function assertLeading({ assertLeader }: ApiRequest): void {
  try {
    assertLeader?.();
  } catch (cause) {
    throw new FenceClosed('not allowed', { cause });
  }
}

function connectionErrorOf(
  outgoing: ApiRequest,
  { passed }: Deadline,
  cause: unknown,
): ConnectionError | ResponseTooLargeError {
  if (cause instanceof ResponseTooLargeError)
    return new ResponseTooLargeError(cause.limit, `${describe(outgoing)}: the answer`);
  const why = passed ? `no answer within ${outgoing.timeoutMs / 1000} s` : messageOf(cause);
  return new ConnectionError(`${describe(outgoing)}: ${why}`, { cause });
}

/** As it reads in an error: without the query, which may be long. */
function describe({ method, path }: ApiRequest): string {
  return `${method} ${path.split('?', 1)[0]}`;
}

function isRetryable(error: unknown): boolean {
  return error instanceof Error && 'retryable' in error && error.retryable === true;
}

/** `299 - "a text"`, several of them divided by commas. */
function* parseWarnings(header: string): Generator<string, void, undefined> {
  for (const [, text = ''] of header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g))
    yield text.replace(/\\(.)/g, '$1');
}
