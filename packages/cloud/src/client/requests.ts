import { Deadline, jittered, messageOf, type Transport, type TransportRequest, wait } from '@vmwright/core';
import {
  CloudError,
  ConnectionError,
  TooManyRequestsError,
  UnavailableError,
  UnexpectedAnswerError,
} from './errors.ts';
import { errorFrom } from './problem.ts';
import { Rest } from './rest.ts';
import type { CloudWorld } from './world.ts';

/** Told of each answer, for metrics. */
export interface RequestObserver {
  /**
   * @param route as the API's document has it: `/servers/{id}`
   * @param code the HTTP status, or `<error>` where none has come
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

export interface Outgoing<T> {
  readonly method: TransportRequest['method'];
  readonly route: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Whether sending it twice does no harm. If not, it is sent again only after a 429: that was not carried out. */
  readonly idempotent: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called right before it is sent, each time; throws when it must not be. */
  readonly assertLeader?: (() => void) | undefined;
  /** For one sending and its whole answer. */
  readonly timeoutMs: number;
  /** How often it is sent, at most. */
  readonly tries: number;
  /** Limit of the answer in bytes. @default that of one server */
  readonly maxBytes?: number;
  /** What the body of a success says; throws when it is none of ours. */
  readonly read: (text: string) => T;
}

/** A server has at most 64 labels of 318 characters, and JSON may take six for one. */
const SERVER_BYTES = 1 << 20;
/** Limit of a page of servers: 1,000 of them, most with few labels. */
export const PAGE_BYTES = 32 << 20;

const FIRST_DELAY_MS = 100;
/** Longer than this it is the caller's, whose back-off is made for it. */
const LONGEST_DELAY_MS = 5_000;

/** Sends requests: with the key, a deadline, and again where that is safe. */
export class Requests {
  readonly #options: RequestsOptions;
  readonly #rest: Rest;

  constructor(options: RequestsOptions) {
    this.#options = options;
    this.#rest = new Rest(options.world);
  }

  /** @throws CloudError for an answer that is no success, ConnectionError for none, and what `assertLeader` and `apiKey` throw */
  async send<T>(outgoing: Outgoing<T>): Promise<T> {
    const { world } = this.#options;
    const { signal, timeoutMs } = outgoing;
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      // Once for each sending: what cleans an error of the key must not have to ask for it, and fail in turn.
      const key = this.#options.apiKey();
      const deadline = new Deadline(world, timeoutMs, signal);
      try {
        return await this.#attempt(outgoing, key, deadline);
      } catch (caught) {
        signal?.throwIfAborted();
        // Nothing was sent: asking a fence that has closed again and again opens nothing.
        if (caught instanceof NotAllowed) throw caught.cause;
        const error = caught instanceof CloudError ? caught : unanswered(outgoing, key, deadline, caught);
        const delay =
          tries < outgoing.tries ? this.#delayBeforeNext(outgoing.idempotent, error, tries) : undefined;
        if (delay === undefined) throw error;
        await wait(world, delay, signal);
      } finally {
        deadline.end();
      }
    }
  }

  async #attempt<T>(outgoing: Outgoing<T>, key: string, { signal }: Deadline): Promise<T> {
    const { world, transport, userAgent, observer } = this.#options;
    const { method, route, path, headers, body, read, maxBytes = SERVER_BYTES } = outgoing;
    const assertMayBeSent = () => {
      refuseUnlessAllowed(outgoing);
      this.#rest.refuse(nameOf(outgoing), key);
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
      beforeSend: assertMayBeSent,
      maxBytes,
    };
    const started = world.monotonic();
    const tell = (code: string) => observer?.answered(method, route, code, world.monotonic() - started);
    assertMayBeSent(); // and again when it has a connection to be sent over: it may wait for one
    let status = 0;
    let text: string;
    let retryAfter: string | undefined;
    try {
      const response = await transport.request(request);
      status = response.status;
      retryAfter = response.header('retry-after');
      text = await response.text();
    } catch (error) {
      const wasSent = !(error instanceof NotAllowed || error instanceof CloudError);
      if (wasSent) tell('<error>');
      if (!isTooLarge(error)) throw error;
      // Not retried: the next answer would be as large.
      throw new UnexpectedAnswerError(withoutKey(`${nameOf(outgoing)}: ${messageOf(error)}`, key), {
        status,
      });
    }
    tell(String(status));
    if (status < 200 || status > 299) {
      const answer = { status, body: text, retryAfter };
      const error = errorFrom(nameOf(outgoing), answer, world.now(), (said) => withoutKey(said, key));
      this.#rest.after(error, key);
      throw error;
    }
    try {
      return read(text);
    } catch (error) {
      const message = withoutKey(`${nameOf(outgoing)}: ${messageOf(error)}`, key);
      throw new UnexpectedAnswerError(message, { status });
    }
  }

  #delayBeforeNext(
    idempotent: boolean,
    error: CloudError | ConnectionError,
    tries: number,
  ): number | undefined {
    if (!(error instanceof TooManyRequestsError || (idempotent && error.retryable))) return undefined;
    const asks = error instanceof TooManyRequestsError || error instanceof UnavailableError;
    const asked = asks ? (error.retryAfterMs ?? 0) : 0;
    // Added to what was asked for: all who were sent away at once would come back at once.
    const delay = asked + jittered(this.#options.world, FIRST_DELAY_MS * 2 ** (tries - 1));
    return delay > LONGEST_DELAY_MS ? undefined : delay;
  }
}

/** Carries what `assertLeader` has thrown past those who tell failures of the network. */
class NotAllowed extends Error {}

function refuseUnlessAllowed({ assertLeader }: Outgoing<unknown>): void {
  try {
    assertLeader?.();
  } catch (cause) {
    throw new NotAllowed('not allowed', { cause });
  }
}

function unanswered(
  outgoing: Outgoing<unknown>,
  key: string,
  { passed }: Deadline,
  cause: unknown,
): ConnectionError {
  const why = passed ? `no answer within ${outgoing.timeoutMs / 1000} s` : withoutKey(messageOf(cause), key);
  const effect = outgoing.method === 'GET' ? '' : '; whether the cloud has carried it out is unknown';
  // Without the cause: what a transport hangs on its errors is not ours to know, and may be the request's headers.
  return new ConnectionError(`${nameOf(outgoing)}: ${why}${effect}`);
}

function withoutKey(text: string, key: string): string {
  if (key === '') return text;
  const inJson = JSON.stringify(key).slice(1, -1);
  return text.replaceAll(key, '[redacted]').replaceAll(inJson, '[redacted]');
}

/** As it reads in an error: without the query, which may be long. */
function nameOf({ method, path }: Outgoing<unknown>): string {
  return `${method} ${path.split('?', 1)[0]}`;
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'RESPONSE_TOO_LARGE';
}
