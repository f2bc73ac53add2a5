import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { type Clock, type Logger, messageOf } from '@vmwright/core';
import { type HttpResponse, RequestError, send } from './http-response.ts';

/** Thrown when a server cannot listen, for example because its port is in use. */
export class ServerError extends Error {
  readonly code = 'SERVER';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ServerError';
  }
}

export interface ListenerOptions {
  readonly clock: Pick<Clock, 'after'>;
  readonly logger: Logger;
  /** What the server serves, such as `metrics and health`. Named in the error if the server cannot listen. */
  readonly serves: string;
  /** Port to listen on; 0 selects a free one. */
  readonly port: number;
  /** Address to listen on. @default all addresses */
  readonly host?: string | undefined;
  /** Time that `close` waits for pending responses, in milliseconds. @default 5_000 */
  readonly graceMs?: number | undefined;
  /**
   * Maximum number of connections. At the maximum, a new connection replaces the least recently used connection that
   * has no complete request. If there is no such connection, the new one is closed.
   */
  readonly maxConnections: number;
}

/**
 * Client timeouts, for `createServer`. Node enforces them with its own timers, not with `clock`. It answers a request
 * that exceeds a timeout with 408 and closes the connection.
 */
export const SERVER_TIMEOUTS = {
  /**
   * Timeout for receiving the headers of a request. For the first request on a connection, it starts when the
   * connection opens. For each later request, it starts with the first byte of the request.
   */
  headersTimeout: 10_000,
  /** Timeout of the whole request. */
  requestTimeout: 20_000,
  connectionsCheckingInterval: 2_000,
} as const;

/** Timeout of the TLS handshake, in addition to `SERVER_TIMEOUTS`. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;

/** Time after which a closing server closes connections on which no request has arrived yet. */
const UNUSED_MS = 500;

/**
 * Manages the connections of an HTTP or HTTPS server.
 *
 * Guarantees: there are at most `maxConnections` connections. Clients that open connections without sending requests
 * cannot block other clients. `close` waits for pending responses.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  /**
   * Connections on which no request has arrived yet. Node does not count them as idle, so `closeIdleConnections` does
   * not close them.
   */
  readonly #unused = new Set<Socket>();
  /** All connections, including those in the TLS handshake, in least recently used order. */
  readonly #connections = new Map<string, Connection>();
  #closing: Promise<void> | undefined;

  constructor(server: Server, options: ListenerOptions) {
    this.#server = server;
    this.#options = options;
    server.on('connection', (socket: Socket) => {
      const id = idOf(socket);
      const connection: Connection = { socket, request: undefined };
      this.#makeRoom(connection);
      if (socket.destroyed) return;
      this.#connections.set(id, connection);
      socket.once('close', () => {
        if (this.#connections.get(id) === connection) this.#connections.delete(id);
      });
    });
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#unused.add(socket);
      socket.once('close', () => this.#unused.delete(socket));
    });
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#unused.delete(request.socket);
      this.#touch(request, response);
      // While the server closes, an idle connection is closed immediately. Otherwise it would delay `close` until its
      // keep-alive timeout.
      response.once('close', () => this.#closing && server.closeIdleConnections());
    });
  }

  async open(): Promise<void> {
    const { port, host, serves } = this.#options;
    this.#server.listen(host === undefined ? { port } : { port, host });
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      const address = `${host ?? '*'}:${port}`;
      throw new ServerError(`cannot serve ${serves} on ${address}: ${messageOf(error)}`, { cause: error });
    }
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new ServerError('the server is closed');
    return address.port;
  }

  /** Accepts no new connections. Resolves when all requests are answered or `graceMs` has passed. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      const { clock, graceMs = 5_000 } = this.#options;
      const timers = [
        // Clients open connections in advance and may never use them.
        clock.after(UNUSED_MS, () => this.#unused.forEach((socket) => void socket.destroy())),
        clock.after(graceMs, () => this.#connections.forEach(({ socket }) => void socket.destroy())),
      ];
      this.#server.close(() => {
        for (const timer of timers) timer.cancel();
        resolve();
      });
    });
    return this.#closing;
  }

  #makeRoom({ socket }: Connection): void {
    if (this.#connections.size < this.#options.maxConnections) return;
    for (const [id, { socket: other, request }] of this.#connections) {
      // A connection with an incomplete request may be closed too. Otherwise a client could hold connections at no cost
      // by sending only a part of a request.
      if (request?.complete) continue;
      this.#connections.delete(id);
      other.destroy();
      return;
    }
    socket.destroy();
  }

  /** Marks the connection as most recently used, and as busy until the response is sent. */
  #touch(request: IncomingMessage, response: ServerResponse): void {
    const id = idOf(request.socket);
    const connection = this.#connections.get(id);
    if (connection === undefined) return;
    this.#connections.delete(id);
    this.#connections.set(id, connection);
    connection.request = request;
    response.once('close', () => {
      if (connection.request === request) connection.request = undefined;
    });
  }
}

interface Connection {
  readonly socket: Socket;
  /** Request that is being received or answered. */
  request: IncomingMessage | undefined;
}

/** Identifies a connection; a TCP socket and the TLS socket over it have the same id. */
function idOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * Returns a request listener that sends the handler's response. A RequestError is answered with its status, other
 * errors with 500.
 */
export function requestListener(logger: Logger, handle: (request: IncomingMessage) => Promise<HttpResponse>) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    // Ignore clients that disconnect early.
    response.on('error', () => undefined);
    handle(request).then(
      (content) => send(response, content),
      (error) => {
        if (error instanceof RequestError) {
          send(response, {
            status: error.status,
            text: error.message,
            headers: { ...error.headers, ...CLOSE },
          });
          return;
        }
        logger.error({ path: request.url, error }, 'Request failed');
        send(response, { status: 500, text: 'internal error; see the log\n' });
      },
    );
  };
}

/** Closes the connection after a rejection, because the unread rest of the body would be parsed as the next request. */
const CLOSE = { connection: 'close' };

export function urlOf({ url = '' }: IncomingMessage): URL {
  const address = url.startsWith('/') ? `http://server${url}` : url;
  if (!URL.canParse(address)) throw new RequestError(400, 'the request URL is invalid\n');
  return new URL(address);
}
