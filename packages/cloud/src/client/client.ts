import type { TlsOptions } from '@vmwright/core';
import type { LabelChanges, NewServer, Server, ServerStatus } from '../api/server.ts';
import { UnexpectedAnswerError } from './errors.ts';
import { type OutgoingRequest, PAGE_BYTES, type RequestObserver, Requests } from './requests.ts';
import { parseAvailability, parsePage, parseServer, parseStatus } from './responses.ts';
import type { CloudWorld } from './world.ts';

export interface CloudClientOptions {
  readonly world: CloudWorld;
  /** Base URL, such as `https://cloud.example:8480`. May have a path, which is prefixed to the API's paths. */
  readonly url: string;
  /**
   * API key, or a function that returns it. The function is called for each attempt, so that the key can be rotated.
   */
  readonly apiKey: string | (() => string);
  /** TLS options for `https:`. @default trusts the system's certificate authorities */
  readonly tls?: () => Promise<TlsOptions>;
  /** Timeout of one attempt in milliseconds, including its response. @default 10_000 */
  readonly timeoutMs?: number;
  /** User agent of all requests. @default 'vmwright-cloud-client' */
  readonly userAgent?: string;
  readonly observer?: RequestObserver;
}

/** Cancellation and fencing for the calls of one piece of work, such as a reconcile. */
export interface CallScope {
  /** Aborts the calls that have no signal of their own. */
  readonly signal?: AbortSignal;
  /**
   * Called right before each attempt of a write. Throws to prevent the attempt, for example after leadership was lost.
   */
  assertLeader(): void;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Timeout of one attempt in milliseconds. @default `timeoutMs` of the client */
  readonly timeoutMs?: number;
  /** Maximum number of attempts, including the first one. Applies only if a retry is safe. @default 4 */
  readonly tries?: number;
}

export interface ListOptions extends CallOptions {
  readonly name?: string;
  /** Lists only servers that have all of these labels; `undefined` matches any value. */
  readonly labels?: Readonly<Record<string, string | undefined>>;
  /** Maximum number of servers per page. @default 1_000 */
  readonly limit?: number;
}

/** Thrown when the options of a client are invalid. */
export class ClientOptionsError extends Error {
  readonly code = 'CLIENT_OPTIONS';

  constructor(message: string) {
    super(message);
    this.name = 'ClientOptionsError';
  }
}

type Operation<T> = Omit<OutgoingRequest<T>, 'route' | 'signal' | 'timeoutMs' | 'maxAttempts' | 'path'>;

/**
 * Client of the private cloud's API.
 *
 * Guarantees: after a transient failure, reads, label changes, deletes and creates with an idempotency key are retried
 * a few times. A create without a key is retried only after a 429, because a 429 means that the cloud did not execute
 * the request. Responses are checked against their type. No error contains the API key.
 *
 * Errors: an error response throws a subclass of `CloudError`. A missing response throws a `ConnectionError`; a write
 * may then have been executed, or may still be executed later.
 */
export class CloudClient implements AsyncDisposable {
  readonly #options: CloudClientOptions;
  readonly #prefix: string;
  readonly #requests: Requests;
  readonly #close: () => Promise<void>;
  readonly #scope: CallScope | undefined;

  constructor(
    options: CloudClientOptions,
    shared?: { readonly client: CloudClient; readonly scope: CallScope },
  ) {
    const { world, apiKey, tls, userAgent = 'vmwright-cloud-client', observer } = options;
    const { origin, pathname, protocol } = parseUrl(options.url);
    this.#options = options;
    this.#prefix = pathname.replace(/\/$/, '');
    this.#scope = shared?.scope;
    if (shared !== undefined) {
      this.#requests = shared.client.#requests;
      this.#close = async () => undefined; // the client that opened the connections closes them
      return;
    }
    if (typeof apiKey === 'string' && !/^[\x21-\x7e]+$/.test(apiKey))
      throw new ClientOptionsError('the API key is empty or contains whitespace or non-ASCII characters');
    const secure = protocol === 'https:' && { tls: tls ?? (async () => ({})) };
    const transport = world.connect({ origin, ...secure });
    const key = typeof apiKey === 'string' ? () => apiKey : apiKey;
    this.#requests = new Requests({ world, transport, apiKey: key, userAgent, observer });
    this.#close = () => transport.close();
  }

  /** Returns a client that shares these connections and applies `scope` to its calls. */
  scoped(scope: CallScope): CloudClient {
    return new CloudClient(this.#options, { client: this, scope });
  }

  /**
   * Resolves if the name is available.
   * @throws ProhibitedNameError, NameTakenError, or InvalidRequestError if it is not a valid name
   */
  check(name: string, options: CallOptions = {}): Promise<void> {
    const parse = (text: string) => parseAvailability(text, name);
    return this.#send('/check/{name}', [name], { method: 'GET', idempotent: true, parse }, options);
  }

  /**
   * Creates a server, or returns the server that was created earlier with this key.
   * @param key idempotency key, chosen before the first attempt. All requests with the same key create only one server.
   * Without a key, each executed request creates a server.
   * @throws GoneError if the server of this key was deleted
   */
  create(server: NewServer, key: string | undefined, options: CallOptions = {}): Promise<Server> {
    const operation = {
      method: 'POST',
      body: JSON.stringify(server),
      ...(key !== undefined && { headers: { 'idempotency-key': key } }),
      idempotent: key !== undefined,
      parse: parseServer,
    } as const;
    return this.#send('/servers', [], operation, options);
  }

  get(id: string, options: CallOptions = {}): Promise<Server> {
    return this.#send(
      '/servers/{id}',
      [id],
      { method: 'GET', idempotent: true, parse: parseServer },
      options,
    );
  }

  status(id: string, options: CallOptions = {}): Promise<ServerStatus> {
    return this.#send(
      '/servers/{id}/status',
      [id],
      { method: 'GET', idempotent: true, parse: parseStatus },
      options,
    );
  }

  /** Lists servers page by page. A server that exists during the whole listing is in exactly one page. */
  async *list(options: ListOptions = {}): AsyncGenerator<readonly Server[], void, undefined> {
    const { name, labels = {}, limit = 1_000 } = options;
    let cursor: string | undefined;
    do {
      const query = new URLSearchParams({ limit: String(limit) });
      if (name !== undefined) query.set('name', name);
      for (const [key, value] of Object.entries(labels))
        query.append('label', value === undefined ? key : `${key}=${value}`);
      if (cursor !== undefined) query.set('cursor', cursor);
      const page = await this.#send(
        '/servers',
        [],
        { method: 'GET', idempotent: true, parse: parsePage, maxBytes: PAGE_BYTES },
        options,
        query,
      );
      yield page.items;
      if (page.next !== undefined && page.next === cursor)
        throw new UnexpectedAnswerError('GET /servers: the page returned its own cursor as `next`', {
          status: 200,
        });
      cursor = page.next;
    } while (cursor !== undefined);
  }

  /** Sets labels and removes those that are null. Other labels are unchanged. */
  relabel(id: string, labels: LabelChanges, options: CallOptions = {}): Promise<Server> {
    const body = JSON.stringify({ labels });
    const operation = { method: 'PATCH', body, idempotent: true, parse: parseServer } as const;
    return this.#send('/servers/{id}', [id], operation, options);
  }

  /**
   * Starts the deletion of a server. The server is gone once `get` throws NotFoundError.
   * @throws NotFoundError if the server does not exist, even if an earlier attempt of this call deleted it
   */
  delete(id: string, options: CallOptions = {}): Promise<void> {
    const parse = () => undefined;
    return this.#send('/servers/{id}', [id], { method: 'DELETE', idempotent: true, parse }, options);
  }

  /** Closes the connections and aborts pending requests. Does nothing on a scoped client. */
  close(): Promise<void> {
    return this.#close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #send<T>(
    route: string,
    values: readonly string[],
    operation: Operation<T>,
    options: CallOptions,
    query?: URLSearchParams,
  ): Promise<T> {
    const scope = this.#scope;
    let index = 0;
    const path = route.replaceAll(/\{\w+\}/g, () => encodeURIComponent(values[index++] ?? ''));
    return this.#requests.send({
      ...operation,
      route,
      path: `${this.#prefix}${path}${query === undefined ? '' : `?${query}`}`,
      signal: options.signal ?? scope?.signal,
      timeoutMs: options.timeoutMs ?? this.#options.timeoutMs ?? 10_000,
      maxAttempts: options.tries ?? 4,
      assertLeader:
        operation.method === 'GET' || scope === undefined ? undefined : () => scope.assertLeader(),
    });
  }
}

function parseUrl(url: string): URL {
  const address = URL.canParse(url) ? new URL(url) : undefined;
  if (address === undefined || !/^https?:$/.test(address.protocol))
    throw new ClientOptionsError(`"${url}" is not a valid cloud URL; an example is http://127.0.0.1:8480`);
  return address;
}
