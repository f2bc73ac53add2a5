import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { type Clock, type Logger, messageOf } from '@vmwright/core';
import { type Answer, RequestError, send } from './answer.ts';

/** Something about the server itself: its port is taken. */
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
  /** What it is for, in the sentence about a port that is taken: `metrics and health`. */
  readonly serves: string;
  /** 0 for any that is free. */
  readonly port: number;
  /** @default all addresses of this machine */
  readonly host?: string | undefined;
  /** How long `close` waits for answers under way. @default 5_000 */
  readonly graceMs?: number | undefined;
  /**
   * Maximum number of connections. One more closes the connection that has been without a complete request for the
   * longest; if there is none, the new one is closed.
   */
  readonly maxConnections: number;
}

/**
 * How long clients may take, for `createServer`. Node checks them itself, on real time; a request that takes longer is
 * answered 408 and its connection closed.
 */
export const SERVER_TIMEOUTS = {
  /** For the head of a request, counted from its first byte or from the connection. */
  headersTimeout: 10_000,
  /** For the head and the body. */
  requestTimeout: 20_000,
  connectionsCheckingInterval: 2_000,
} as const;

/** For the TLS handshake, beside `SERVER_TIMEOUTS`. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;

/** For a request to come over a connection that was just made when the server closes. */
const UNUSED_MS = 500;

/**
 * An HTTP or HTTPS server from its first to its last request.
 *
 * Guarantees: no request ends the process; there are at most `maxConnections`, and clients that open connections without
 * sending requests do not keep others out; `close` lets answers under way end.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  /** Connections over which no request has come yet; Node does not count them as idle. */
  readonly #unused = new Set<Socket>();
  /** All connections, also those still in their TLS handshake; the one used longest ago comes first. */
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
      this.#used(request, response);
      // Its connection is idle from then on, and would hold up the end for as long as idle ones are kept.
      response.once('close', () => this.#closing && server.closeIdleConnections());
    });
  }

  async open(): Promise<void> {
    const { port, host, serves } = this.#options;
    this.#server.listen(host === undefined ? { port } : { port, host });
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      const where = `${host ?? '*'}:${port}`;
      throw new ServerError(`cannot serve ${serves} on ${where}: ${messageOf(error)}`, { cause: error });
    }
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new ServerError('the server is closed');
    return address.port;
  }

  /** Takes no more requests; resolves when those there are have been answered, or have had their time. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      const { clock, graceMs = 5_000 } = this.#options;
      const timers = [
        // Clients open some in advance, and may never use them.
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
      // Half-sent requests do not protect a connection: sending them costs a client nothing.
      if (request?.complete) continue;
      this.#connections.delete(id);
      other.destroy();
      return;
    }
    socket.destroy();
  }

  #used(request: IncomingMessage, response: ServerResponse): void {
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
  /** The one that is being received or answered. */
  request: IncomingMessage | undefined;
}

/** The same for a connection and for the TLS connection over it. */
function idOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Sends what is answered; a request that makes no sense gets its sentence, and a failure of ours 500. */
export function answering(logger: Logger, answer: (request: IncomingMessage) => Promise<Answer>) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    // A client that leaves early is no error of ours.
    response.on('error', () => undefined);
    answer(request).then(
      (given) => send(response, given),
      (error) => {
        if (error instanceof RequestError) {
          send(response, {
            status: error.status,
            text: error.message,
            headers: { ...error.headers, ...CLOSE },
          });
          return;
        }
        logger.error({ path: request.url, error }, 'could not answer a request');
        send(response, { status: 500, text: 'internal error; see the log\n' });
      },
    );
  };
}

/** What is left of a body that was not read would be taken for the next request. */
const CLOSE = { connection: 'close' };

export function addressOf({ url = '' }: IncomingMessage): URL {
  const address = url.startsWith('/') ? `http://server${url}` : url;
  if (!URL.canParse(address)) throw new RequestError(400, 'the address makes no sense\n');
  return new URL(address);
}
