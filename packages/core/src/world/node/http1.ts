import type { Dispatcher } from 'undici';
// The pool is imported by file, because undici's index also loads fetch, WebSocket, mocks and caches, which take 13 MB.
import Pool from 'undici/lib/dispatcher/pool.js';
import type { HttpProxy } from '../proxy.ts';
import type { ServerAddress, TransportRequest, TransportResponse } from '../world.ts';
import { Body } from './body.ts';
import { openSocket } from './socket.ts';

/** Time after which idle connections are closed. A shorter `Keep-Alive: timeout` of the server takes precedence. */
const IDLE_MS = 30_000;
/**
 * An idle connection is closed this long before the server would close it, so that no request is sent on a closing
 * connection.
 */
const KEEP_ALIVE_MARGIN_MS = 1_000;
const MAX_HEADER_BYTES = 64 << 10;

export interface Http1Options {
  readonly server: ServerAddress;
  readonly proxy?: HttpProxy | undefined;
  /** Maximum number of connections; further requests wait in order. @default one connection per concurrent request */
  readonly connections?: number;
}

/**
 * Pool of persistent HTTP/1.1 connections, without pipelining, implemented with undici (docs/internals/decisions/016).
 */
export class Http1Pool {
  readonly #pool: InstanceType<typeof Pool>;
  /**
   * Prefix of each path. A proxy that forwards plain HTTP expects absolute URLs, so the prefix is then the server's
   * origin. Otherwise it is empty.
   */
  readonly #prefix: string;
  readonly #authorization: { readonly 'proxy-authorization': string } | undefined;
  #closed = false;

  constructor({ server, proxy, connections }: Http1Options) {
    const forwarding = server.tls === undefined ? proxy : undefined;
    this.#prefix = forwarding === undefined ? '' : server.origin;
    this.#authorization =
      forwarding?.authorization === undefined
        ? undefined
        : { 'proxy-authorization': forwarding.authorization };
    this.#pool = new Pool(server.origin, {
      allowH2: false,
      // 0 disables undici's timeouts: each request brings its own timeout as an abort signal.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      ...(connections !== undefined && { connections }),
      connect: (_, done) =>
        void openSocket(server, { protocols: ['http/1.1'], proxy }).then(
          (socket) => done(null, socket),
          (error) => done(toError(error), null),
        ),
    });
  }

  send(request: TransportRequest): Promise<TransportResponse> {
    const { method, path, headers, body, signal } = request;
    return new Promise((resolve, reject) => {
      if (this.#closed) throw closedError();
      signal?.throwIfAborted();
      // Rejected here, because undici would truncate non-ASCII characters to single bytes.
      if (UNSAFE_IN_PATH.test(path))
        throw new Error(`${method} ${JSON.stringify(path)}: the path contains an invalid character`);
      this.#pool.dispatch(
        {
          method,
          path: this.#prefix + path,
          headers: this.#authorization === undefined ? headers : { ...headers, ...this.#authorization },
          ...(body !== undefined && { body }),
          // Kubernetes has DELETE requests with a body; by default, undici closes the connection after such a request.
          ...(method === 'DELETE' && { reset: false }),
        },
        new Exchange(request, resolve, reject),
      );
    });
  }

  /** Rejects new requests; queued and running requests continue. */
  retire(): void {
    this.#pool.close().catch(() => undefined);
  }

  close(): void {
    this.#closed = true;
    this.#pool.destroy(closedError()).catch(() => undefined);
  }
}

function closedError(): Error {
  return new Error('the client was closed');
}

const UNSAFE_IN_PATH = /[^\x21-\x7e]/;

/** One request and its response. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: TransportRequest;
  readonly #resolve: (response: TransportResponse) => void;
  readonly #reject: (error: unknown) => void;
  readonly #abort = () => this.#onAbort();
  #controller: Dispatcher.DispatchController | undefined;
  #body: Body | undefined;

  constructor(
    request: TransportRequest,
    resolve: (response: TransportResponse) => void,
    reject: (error: unknown) => void,
  ) {
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
    request.signal?.addEventListener('abort', this.#abort, { once: true });
  }

  /** Called when a connection is available, right before the request is written. If it throws, nothing is sent. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#request.signal?.throwIfAborted();
    this.#request.beforeSend?.();
    this.#controller = controller;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    if (status < 200) return; // informational; the final response follows
    const coding = headers['transfer-encoding'];
    if (coding !== undefined && !/^chunked$/i.test(String(coding))) {
      // The request accepts no transfer coding other than chunked. For any other coding, undici would return compressed
      // bytes or read until the connection closes.
      controller.abort(
        new Error(`the response has the unsupported transfer coding ${JSON.stringify(coding)}`),
      );
      return;
    }
    const body = new Body(controller, status, this.#request.maxBytes);
    this.#body = body;
    this.#resolve(body.response(status, headers));
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#release();
    this.#body?.end();
  }

  onResponseError(_: unknown, error: Error): void {
    this.#release();
    if (this.#body === undefined) this.#reject(error);
    else this.#body.fail(error);
  }

  #onAbort(): void {
    const reason: unknown = this.#request.signal?.reason;
    if (this.#controller === undefined) {
      // The request is still queued. When a connection becomes available, `onRequestStart` throws, and the next request
      // gets the connection.
      this.#release();
      this.#reject(reason);
    } else this.#controller.abort(toError(reason));
  }

  #release(): void {
    this.#request.signal?.removeEventListener('abort', this.#abort);
  }
}

export function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
