import type { TlsOptions } from '@vmwright/core';
import type { LabelChanges, NewServer, Server, ServerStatus } from '../api/server.ts';
import { availabilityIn, pageIn, serverIn, statusIn } from './answers.ts';
import { UnexpectedAnswerError } from './errors.ts';
import { type Outgoing, PAGE_BYTES, type RequestObserver, Requests } from './requests.ts';
import type { CloudWorld } from './world.ts';

export interface CloudClientOptions {
  readonly world: CloudWorld;
  /** `https://cloud.example:8480`, or with a path before the API's own. */
  readonly url: string;
  /** A function is asked each time: keys are replaced. */
  readonly apiKey: string | (() => string);
  /** For `https:`: whom to trust. @default the system's authorities */
  readonly tls?: () => Promise<TlsOptions>;
  /** For each sending of a request and its answer. @default 10_000 */
  readonly timeoutMs?: number;
  /** @default 'vmwright-cloud-client' */
  readonly userAgent?: string;
  readonly observer?: RequestObserver;
}

/** On whose behalf calls are made. */
export interface CallScope {
  /** With which its calls end, unless they name another. */
  readonly signal?: AbortSignal;
  /** Called right before each sending of a write; throws when it must not be made (any more). */
  assertLeader(): void;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** @default the client's */
  readonly timeoutMs?: number;
  /** How often it is sent, at most, where that is safe. @default 4 */
  readonly tries?: number;
}

export interface ListOptions extends CallOptions {
  readonly name?: string;
  /** Those that have all of these; a value of `undefined` stands for any. */
  readonly labels?: Readonly<Record<string, string | undefined>>;
  /** How many a page. @default 1_000 */
  readonly limit?: number;
}

/** A client that was made of something that cannot work. */
export class ClientOptionsError extends Error {
  readonly code = 'CLIENT_OPTIONS';

  constructor(message: string) {
    super(message);
    this.name = 'ClientOptionsError';
  }
}

type Sent<T> = Omit<Outgoing<T>, 'signal' | 'timeoutMs' | 'tries' | 'allow' | 'path'>;

/**
 * Talks to the private cloud.
 *
 * Guarantees: reads, deletes and creates with a key are tried again, a few times, after a failure that may pass; a
 * create without a key only where the cloud says that it has done nothing. Answers have the shape that their type says.
 * The API key is in no error.
 *
 * Errors: an answer that is no success is a `CloudError` of the fitting class; no answer is a `ConnectionError`, after
 * which a write may have been carried out or not, or may be yet.
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
    const { origin, pathname, protocol } = addressIn(options.url);
    this.#options = options;
    this.#prefix = pathname.replace(/\/$/, '');
    this.#scope = shared?.scope;
    if (shared !== undefined) {
      this.#requests = shared.client.#requests;
      this.#close = async () => undefined; // who opened the connections closes them
      return;
    }
    if (typeof apiKey === 'string' && !/^[\x21-\x7e]+$/.test(apiKey))
      throw new ClientOptionsError('the API key is empty, or has a space or a line break in it');
    const secure = protocol === 'https:' && { tls: tls ?? (async () => ({})) };
    const transport = world.connect({ origin, ...secure });
    const key = typeof apiKey === 'string' ? () => apiKey : apiKey;
    this.#requests = new Requests({ world, transport, apiKey: key, userAgent, observer });
    this.#close = () => transport.close();
  }

  /** The same client for one piece of work: its calls end with it, and its writes are allowed by its `scope`. */
  scoped(scope: CallScope): CloudClient {
    return new CloudClient(this.#options, { client: this, scope });
  }

  /**
   * Resolves if a server could be called that.
   * @throws ProhibitedNameError, NameTakenError; InvalidRequestError for what is no name at all
   */
  check(name: string, options: CallOptions = {}): Promise<void> {
    const read = (text: string) => availabilityIn(text, name);
    return this.#send('/check/{name}', [name], { method: 'GET', idempotent: true, read }, options);
  }

  /**
   * Creates a server, or gives the one that was created with this key before.
   * @param key makes it one server however often it is sent: something that is fixed before the first sending
   * @throws GoneError when the key's server was deleted
   */
  create(server: NewServer, key: string | undefined, options: CallOptions = {}): Promise<Server> {
    const outgoing = {
      method: 'POST',
      body: JSON.stringify(server),
      ...(key !== undefined && { headers: { 'idempotency-key': key } }),
      idempotent: key !== undefined,
      read: serverIn,
    } as const;
    return this.#send('/servers', [], outgoing, options);
  }

  get(id: string, options: CallOptions = {}): Promise<Server> {
    return this.#send('/servers/{id}', [id], { method: 'GET', idempotent: true, read: serverIn }, options);
  }

  status(id: string, options: CallOptions = {}): Promise<ServerStatus> {
    return this.#send(
      '/servers/{id}/status',
      [id],
      { method: 'GET', idempotent: true, read: statusIn },
      options,
    );
  }

  /**
   * Page by page. A server that is there from the first page to the last is in exactly one of them.
   */
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
        { method: 'GET', idempotent: true, read: pageIn, maxBytes: PAGE_BYTES },
        options,
        query,
      );
      yield page.items;
      if (page.next !== undefined && page.next === cursor)
        throw new UnexpectedAnswerError('GET /servers: a page names itself as the next', { status: 200 });
      cursor = page.next;
    } while (cursor !== undefined);
  }

  /** Sets these labels and takes away those that are null; others stay. */
  relabel(id: string, labels: LabelChanges, options: CallOptions = {}): Promise<Server> {
    const body = JSON.stringify({ labels });
    const outgoing = { method: 'PATCH', body, idempotent: true, read: serverIn } as const;
    return this.#send('/servers/{id}', [id], outgoing, options);
  }

  /**
   * Asks for the deletion; the server is gone once `get` throws NotFoundError.
   * @throws NotFoundError when there is none (any more); also after an earlier sending whose answer was lost
   */
  delete(id: string, options: CallOptions = {}): Promise<void> {
    const read = () => undefined;
    return this.#send('/servers/{id}', [id], { method: 'DELETE', idempotent: true, read }, options);
  }

  /** Ends the connections, and what is under way on them. */
  close(): Promise<void> {
    return this.#close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #send<T>(
    route: string,
    values: readonly string[],
    outgoing: Omit<Sent<T>, 'route'>,
    options: CallOptions,
    query?: URLSearchParams,
  ): Promise<T> {
    const scope = this.#scope;
    let at = 0;
    const filled = route.replaceAll(/\{\w+\}/g, () => encodeURIComponent(values[at++] ?? ''));
    return this.#requests.send({
      ...outgoing,
      route,
      path: `${this.#prefix}${filled}${query === undefined ? '' : `?${query}`}`,
      signal: options.signal ?? scope?.signal,
      timeoutMs: options.timeoutMs ?? this.#options.timeoutMs ?? 10_000,
      tries: options.tries ?? 4,
      assertLeader: outgoing.method === 'GET' || scope === undefined ? undefined : () => scope.assertLeader(),
    });
  }
}

function addressIn(url: string): URL {
  const address = URL.canParse(url) ? new URL(url) : undefined;
  if (address === undefined || !/^https?:$/.test(address.protocol))
    throw new ClientOptionsError(`"${url}" is not the address of a cloud; one is http://127.0.0.1:8480`);
  return address;
}
