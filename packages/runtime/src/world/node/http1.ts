import type { Socket } from 'node:net';
import type { ServerAddress, TransportRequest, TransportResponse } from '../world.ts';
import { Body } from './body.ts';
import { headerIn, ResponseParser } from './response-parser.ts';
import { openSocket } from './socket.ts';

/** Given up by most servers after some minutes, by some after one. */
const IDLE_MS = 30_000;
const READ_BUFFER = 64 * 1024;
/** After a connection that did not come about, before the next. */
const PAUSE_MS = 250;

export interface Http1Options {
  readonly server: ServerAddress;
  /** At most; more requests wait for one of these. @default as many as there are requests */
  readonly connections?: number;
}

/**
 * Requests over kept connections, one at a time on each. Own code because it is on the path of every reconcile, and does
 * a small part of what a general client does (docs/decisions/008 has the figures).
 */
export class Http1Pool {
  readonly #options: Http1Options;
  readonly #connections = new Set<Connection>();
  /** The last one used first: those that are not needed any more grow old. */
  readonly #idle: Connection[] = [];
  readonly #waiting = new Set<Waiting>();
  #opening = 0;
  #sweeping: NodeJS.Timeout | undefined;
  #pausing: NodeJS.Timeout | undefined;
  #state: 'open' | 'retired' | 'closed' = 'open';

  constructor(options: Http1Options) {
    this.#options = options;
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const { signal } = request;
    for (;;) {
      if (this.#state === 'closed') throw closedError();
      signal?.throwIfAborted();
      const connection = this.#idle.pop() ?? (await this.#nextFree(signal));
      if (!connection.isOpen) continue;
      if (!signal?.aborted) {
        try {
          request.beforeSend?.(); // it may have waited long for this connection
        } catch (error) {
          this.#release(connection);
          throw error;
        }
        return connection.send(request);
      }
      this.#release(connection);
    }
  }

  /** Takes nothing new but what waits already; what is under way goes on. */
  retire(): void {
    if (this.#state === 'open') this.#state = 'retired';
    for (const connection of this.#idle.splice(0)) connection.end(closedError());
  }

  close(): void {
    this.#state = 'closed';
    clearTimeout(this.#pausing);
    for (const connection of this.#connections) connection.end(closedError());
    for (const { refuse } of this.#waiting) refuse(closedError());
  }

  get #isFull(): boolean {
    const { connections = Number.POSITIVE_INFINITY } = this.#options;
    return this.#connections.size + this.#opening >= connections;
  }

  /** The next connection that is free, or new. Who gives up leaves it to the others. */
  #nextFree(signal: AbortSignal | undefined): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(waiting);
        signal?.removeEventListener('abort', abort);
      };
      const abort = () => waiting.refuse(signal?.reason);
      const waiting: Waiting = {
        take: (connection) => {
          leave();
          resolve(connection);
        },
        refuse: (reason) => {
          leave();
          reject(reason);
        },
      };
      this.#waiting.add(waiting);
      signal?.addEventListener('abort', abort, { once: true });
      this.#openForWaiting();
    });
  }

  #openForWaiting(): void {
    if (this.#state === 'closed' || this.#waiting.size <= this.#opening || this.#isFull) return;
    if (this.#pausing !== undefined && this.#connections.size > 0) return;
    this.#opening += 1;
    this.#open().then(
      (connection) => {
        this.#opening -= 1;
        if (this.#state === 'closed') connection.end(closedError());
        else this.#release(connection);
      },
      (error: unknown) => {
        this.#opening -= 1;
        const [next] = this.#waiting;
        if (this.#connections.size === 0) {
          next?.refuse(error);
          this.#openForWaiting();
        } else this.#openLater(); // while there are others, those who wait get one of them
      },
    );
  }

  /** A server that takes no more connections, and serves those it has, is not to be asked a thousand times a second. */
  #openLater(): void {
    this.#pausing ??= setTimeout(() => {
      this.#pausing = undefined;
      this.#openForWaiting();
    }, PAUSE_MS);
  }

  async #open(): Promise<Connection> {
    const connection = await Connection.open(this.#options.server, {
      free: () => this.#release(connection),
      closed: () => this.#forget(connection),
    });
    this.#connections.add(connection);
    return connection;
  }

  /** To who waits longest, and not into the heap where one who has just come would take it. */
  #release(connection: Connection): void {
    const [next] = this.#waiting;
    if (next !== undefined) next.take(connection);
    else if (this.#state !== 'open') connection.end(closedError());
    else {
      connection.rest();
      this.#idle.push(connection);
      this.#sweeping ??= setInterval(() => this.#sweep(), IDLE_MS / 3).unref();
    }
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    this.#openForWaiting();
  }

  #sweep(): void {
    const old = this.#idle.filter(({ idleSince }) => performance.now() - idleSince > IDLE_MS);
    for (const connection of old) connection.end(closedError());
    if (this.#connections.size > 0) return;
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
  }
}

function closedError(): Error {
  return new Error('the client was closed');
}

/** A request without a connection. */
interface Waiting {
  take(connection: Connection): void;
  refuse(reason: unknown): void;
}

interface Owner {
  free(): void;
  closed(): void;
}

/** The answer that a connection waits for or receives. */
interface Exchange {
  readonly resolve: (response: TransportResponse) => void;
  readonly reject: (error: unknown) => void;
  readonly signal: AbortSignal | undefined;
  readonly abort: () => void;
  body: Body | undefined;
}

class Connection {
  readonly #socket: Socket;
  readonly #owner: Owner;
  readonly #host: string;
  readonly #parser: ResponseParser;
  #exchange: Exchange | undefined;
  #paused = false;
  #idleSince = performance.now();

  private constructor(socket: Socket, host: string, owner: Owner) {
    this.#socket = socket;
    this.#host = host;
    this.#owner = owner;
    this.#parser = new ResponseParser({
      onHead: (status, head) => this.#begin(status, head),
      onBody: (bytes) => this.#exchange?.body?.push(Buffer.from(bytes)),
      onEnd: (reusable) => this.#finish(reusable),
    });
    socket.on('error', (error) => this.#fail(error));
    socket.on('end', () => {
      if (!this.#parser.close()) this.#fail(new Error('the server has closed the connection'));
    });
    socket.on('close', () => {
      this.#fail(new Error('the connection was closed'));
      owner.closed();
    });
  }

  static async open(server: ServerAddress, owner: Owner): Promise<Connection> {
    let connection: Connection | undefined;
    const onread = {
      buffer: Buffer.allocUnsafeSlow(READ_BUFFER),
      callback: (bytes: number, buffer: Buffer) => connection?.read(buffer.subarray(0, bytes)) ?? true,
    };
    const socket = await openSocket(server, { protocols: ['http/1.1'], onread });
    connection = new Connection(socket, new URL(server.origin).host, owner);
    return connection;
  }

  get idleSince(): number {
    return this.#idleSince;
  }

  /** Does not keep the process alive until its next request. */
  rest(): void {
    this.#idleSince = performance.now();
    this.#socket.unref();
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && !this.#socket.readableEnded;
  }

  send({ method, path, headers, body, signal }: TransportRequest): Promise<TransportResponse> {
    let head = `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n`;
    let isSafe = !UNSAFE_IN_PATH.test(path);
    for (const [name, value] of Object.entries(headers)) {
      head += `${name}: ${value}\r\n`;
      isSafe &&= !UNSAFE_IN_HEADER.test(value);
    }
    if (body !== undefined) head += `content-length: ${Buffer.byteLength(body)}\r\n`;
    return new Promise((resolve, reject) => {
      const abort = () => this.end(toError(signal?.reason));
      this.#exchange = { resolve, reject, signal, abort, body: undefined };
      signal?.addEventListener('abort', abort, { once: true });
      this.#socket.ref();
      if (isSafe) this.#socket.write(body === undefined ? `${head}\r\n` : `${head}\r\n${body}`);
      else this.end(new Error(`${method} ${JSON.stringify(path)} has a line break in its path or a header`));
    });
  }

  /** @returns whether to read on */
  read(bytes: Buffer): boolean {
    try {
      this.#parser.read(bytes);
    } catch (error) {
      this.end(toError(error));
    }
    return !this.#paused;
  }

  end(reason: Error): void {
    this.#fail(reason);
    this.#socket.destroy();
  }

  #begin(status: number, head: string): void {
    const exchange = this.#exchange;
    if (exchange === undefined) throw new Error('the server answers what nobody has asked');
    const connection = this;
    const body = new Body({
      get paused() {
        return connection.#paused;
      },
      pause: () => {
        this.#paused = true;
      },
      resume: () => {
        this.#paused = false;
        this.#socket.resume();
      },
      abort: (reason) => this.end(reason),
    });
    exchange.body = body;
    exchange.resolve({
      status,
      header: (name) => headerIn(head, name),
      text: () => body.text(),
      lines: () => body.lines(),
    });
  }

  #finish(reusable: boolean): void {
    const exchange = this.#leave();
    exchange?.body?.end();
    if (reusable) this.#owner.free();
    else this.#socket.destroy();
  }

  #fail(error: Error): void {
    const exchange = this.#leave();
    if (exchange?.body === undefined) exchange?.reject(error);
    else exchange.body.fail(error);
  }

  #leave(): Exchange | undefined {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.signal?.removeEventListener('abort', exchange.abort);
    return exchange;
  }
}

/** What would let a name or a token end the request and begin another. */
const UNSAFE_IN_PATH = /[^\x21-\x7e]/;
const UNSAFE_IN_HEADER = /[\0\r\n]/;

export function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
