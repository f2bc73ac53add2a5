import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { messageOf } from '../errors.ts';
import type { Logger } from '../log/logger.ts';
import type { Clock } from '../world/world.ts';
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
}

/** For a request to come over a connection that was just made when the server closes. */
const UNUSED_MS = 500;

/**
 * An HTTP or HTTPS server from its first to its last request.
 *
 * Guarantees: no request ends the process; `close` lets answers under way end.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  /** Connections over which no request has come yet; Node does not count them as idle. */
  readonly #unused = new Set<Socket>();
  /** All, also those that have not come to speaking HTTP. */
  readonly #sockets = new Set<Socket>();
  #closing: Promise<void> | undefined;

  constructor(server: Server, options: ListenerOptions) {
    this.#server = server;
    this.#options = options;
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#unused.add(socket);
      socket.once('close', () => this.#unused.delete(socket));
    });
    server.on('request', ({ socket }, response) => {
      this.#unused.delete(socket);
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
        clock.after(graceMs, () => this.#sockets.forEach((socket) => void socket.destroy())),
      ];
      this.#server.close(() => {
        for (const timer of timers) timer.cancel();
        resolve();
      });
    });
    return this.#closing;
  }
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
          send(response, { status: error.status, text: error.message, headers: CLOSE });
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
