import { Deadline, wait } from './deadline.ts';
import {
  CloudError,
  ConnectionError,
  TooManyRequestsError,
  UnavailableError,
  UnexpectedAnswerError,
} from './errors.ts';
import { errorFrom } from './problem.ts';
import type { CloudWorld, Transport, TransportRequest } from './world.ts';

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
  readonly allow?: (() => void) | undefined;
  /** For one sending and its whole answer. */
  readonly timeoutMs: number;
  /** How often it is sent, at most. */
  readonly tries: number;
  /** What the body of a success says; throws when it is none of ours. */
  readonly read: (text: string) => T;
}

const FIRST_DELAY_MS = 100;
/** Longer than this it is the caller's, whose back-off is made for it. */
const LONGEST_DELAY_MS = 5_000;
/** Whatever is asked for: a cloud that means an hour may be back in a minute. */
const LONGEST_REST_MS = 60_000;

/** Sends requests: with the key, a deadline, and again where that is safe. */
export class Requests {
  readonly #options: RequestsOptions;
  /** On the monotonic clock. */
  #restUntil = 0;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /** @throws CloudError for an answer that is no success, ConnectionError for none, and what `allow` throws */
  async send<T>(outgoing: Outgoing<T>): Promise<T> {
    const { world } = this.#options;
    const { signal, timeoutMs } = outgoing;
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      const deadline = new Deadline(world, timeoutMs, signal);
      try {
        return await this.#attempt(outgoing, deadline);
      } catch (caught) {
        signal?.throwIfAborted();
        // Nothing was sent: asking a fence that has closed again and again opens nothing.
        if (caught instanceof NotAllowed) throw caught.cause;
        const error = caught instanceof CloudError ? caught : this.#unanswered(outgoing, deadline, caught);
        const delay =
          tries < outgoing.tries ? this.#delayBeforeNext(outgoing.idempotent, error, tries) : undefined;
        if (delay === undefined) throw error;
        await wait(world, delay, signal);
      } finally {
        deadline.end();
      }
    }
  }

  async #attempt<T>(outgoing: Outgoing<T>, { signal }: Deadline): Promise<T> {
    const { world, transport, userAgent, observer } = this.#options;
    const key = this.#options.apiKey();
    const { method, route, path, headers, body, read } = outgoing;
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
      beforeSend: () => refuseUnlessAllowed(outgoing),
    };
    const started = world.monotonic();
    const tell = (code: string) => observer?.answered(method, route, code, world.monotonic() - started);
    refuseUnlessAllowed(outgoing); // and again when it has a connection to be sent over: it may wait for one
    this.#refuseWhileResting(outgoing);
    let status: number;
    let text: string;
    let retryAfter: string | undefined;
    try {
      const response = await transport.request(request);
      status = response.status;
      retryAfter = response.header('retry-after');
      text = await response.text();
    } catch (error) {
      tell('<error>');
      throw error;
    }
    tell(String(status));
    if (status < 200 || status > 299)
      throw this.#rested(
        errorFrom(nameOf(outgoing), { status, body: text, retryAfter }, world.now(), (said) =>
          this.#withoutKey(said),
        ),
      );
    try {
      return read(text);
    } catch (error) {
      throw new UnexpectedAnswerError(this.#withoutKey(`${nameOf(outgoing)}: ${messageOf(error)}`), {
        status,
      });
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
    const delay = asked + FIRST_DELAY_MS * 2 ** (tries - 1) * (0.5 + this.#options.world.random());
    return delay > LONGEST_DELAY_MS ? undefined : delay;
  }

  #unanswered(outgoing: Outgoing<unknown>, { passed }: Deadline, cause: unknown): ConnectionError {
    const why = passed
      ? `no answer within ${outgoing.timeoutMs / 1000} s`
      : this.#withoutKey(messageOf(cause));
    const effect = outgoing.method === 'GET' ? '' : '; whether the cloud has carried it out is unknown';
    // Without the cause: what a transport hangs on its errors is not ours to know, and may be the request's headers.
    return new ConnectionError(`${nameOf(outgoing)}: ${why}${effect}`);
  }

  #withoutKey(text: string): string {
    const key = this.#options.apiKey();
    return key === '' ? text : text.replaceAll(key, '[redacted]');
  }

  /** Who asks for a longer time than we wait in here is left alone by all of us until then. */
  #rested(error: CloudError): CloudError {
    const asks = error instanceof TooManyRequestsError || error instanceof UnavailableError;
    const ms = asks ? (error.retryAfterMs ?? 0) : 0;
    if (ms > LONGEST_DELAY_MS)
      this.#restUntil = this.#options.world.monotonic() + Math.min(ms, LONGEST_REST_MS);
    return error;
  }

  #refuseWhileResting(outgoing: Outgoing<unknown>): void {
    const retryAfterMs = this.#restUntil - this.#options.world.monotonic();
    if (retryAfterMs <= 0) return;
    const detail = 'the cloud has asked for time, and is left alone until then';
    throw new TooManyRequestsError(`${nameOf(outgoing)}: ${detail}`, { status: 429, detail, retryAfterMs });
  }
}

/** Carries what `allow` has thrown past those who tell failures of the network. */
class NotAllowed extends Error {}

function refuseUnlessAllowed({ allow }: Outgoing<unknown>): void {
  try {
    allow?.();
  } catch (cause) {
    throw new NotAllowed('not allowed', { cause });
  }
}

/** As it reads in an error: without the query, which may be long. */
function nameOf({ method, path }: Outgoing<unknown>): string {
  return `${method} ${path.split('?', 1)[0]}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
