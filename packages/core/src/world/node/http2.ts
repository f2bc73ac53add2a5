import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
} from 'node:http2';
import type { Duplex } from 'node:stream';
import { unlessAborted } from '../../async/unless-aborted.ts';
import type { HttpProxy } from '../proxy.ts';
import type { ServerAddress, TransportRequest, TransportResponse } from '../world.ts';
import { Body } from './body.ts';
import { toError } from './http1.ts';
import { openSocket } from './socket.ts';

/**
 * Maximum number of streams per connection. Go servers allow 100 to 250. A server can set a lower limit (SETTINGS
 * frame).
 */
const MAX_STREAMS = 100;
/** Flow-control window in bytes. With the default of 64 KB, an initial list would wait for a round trip per window. */
const STREAM_WINDOW = 1 << 20;
const SESSION_WINDOW = 1 << 22;

export interface Http2Options {
  readonly server: ServerAddress;
  readonly proxy?: HttpProxy | undefined;
  /** Interval between health-check pings, in milliseconds. @default 30_000 */
  readonly pingEveryMs?: number;
  /** Time within which a ping must be acknowledged, in milliseconds. @default 15_000 */
  readonly pingMs?: number;
}

/** Thrown when the server does not support HTTP/2. */
export class NoHttp2Error extends Error {}

/**
 * HTTP/2 client for many long-lived responses. They share one connection. Another connection is opened only when the
 * stream limit is reached.
 *
 * Guarantees: pings detect a dead connection for which TCP reports no error, and all its streams then fail. After
 * GOAWAY, a connection gets no new streams.
 */
export class Http2Streams {
  readonly #options: Http2Options;
  readonly #sessions = new Set<Session>();
  #opening: Promise<Session> | undefined;
  #closed = false;

  constructor(options: Http2Options) {
    this.#options = options;
  }

  /** @throws NoHttp2Error */
  async send(request: TransportRequest): Promise<TransportResponse> {
    for (;;) {
      // Do not await between this check and the send: concurrent requests would exceed the session's stream limit.
      for (const session of this.#sessions) {
        if (!session.hasRoom) continue;
        request.beforeSend?.();
        return session.send(request);
      }
      const session = await unlessAborted(this.#opened(), request.signal);
      if (!session.isUsable) throw new Error('the server closed the connection immediately');
    }
  }

  /** Gives the open connections no new streams, and closes each of them when its last stream has ended. */
  retire(): void {
    for (const session of this.#sessions) session.retire();
  }

  close(): void {
    this.#closed = true;
    for (const session of this.#sessions) session.destroy();
  }

  #opened(): Promise<Session> {
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<Session> {
    const { server, proxy } = this.#options;
    const socket = await openSocket(server, { protocols: ['h2', 'http/1.1'], proxy });
    if (!('alpnProtocol' in socket) || socket.alpnProtocol !== 'h2') {
      socket.destroy();
      throw new NoHttp2Error('the server does not support HTTP/2');
    }
    const session = new Session(this.#options, socket, () => this.#sessions.delete(session));
    this.#sessions.add(session);
    if (this.#closed) session.destroy();
    return session;
  }
}

/** One HTTP/2 connection. */
class Session {
  readonly #session: ClientHttp2Session;
  #streams = 0;
  #retired = false;
  readonly #pingMs: number;

  constructor(
    { server, pingEveryMs = 30_000, pingMs = 15_000 }: Http2Options,
    socket: Duplex,
    onClose: () => void,
  ) {
    const session = connectHttp2(server.origin, {
      createConnection: () => socket,
      settings: { initialWindowSize: STREAM_WINDOW, enablePush: false },
    });
    this.#session = session;
    session.once('connect', () => {
      // The event fires one turn of the event loop after the connect. The session may be destroyed by then.
      if (!session.destroyed) session.setLocalWindowSize(SESSION_WINDOW);
    });
    session.on('goaway', () => this.retire());
    // The error is ignored here, because each stream gets it too, and the session closes.
    session.on('error', () => undefined);
    this.#pingMs = pingMs;
    const pinging = setInterval(() => this.#ping(), pingEveryMs).unref();
    session.once('close', () => {
      clearInterval(pinging);
      onClose();
    });
  }

  get hasRoom(): boolean {
    const { remoteSettings } = this.#session;
    const limit = Math.min(remoteSettings?.maxConcurrentStreams ?? MAX_STREAMS, MAX_STREAMS);
    return this.isUsable && this.#streams < limit;
  }

  /** Whether the session accepts new streams. */
  get isUsable(): boolean {
    return !this.#retired && !this.#session.closed && !this.#session.destroyed;
  }

  send(request: TransportRequest): Promise<TransportResponse> {
    const { method, path, headers, body } = request;
    const stream = this.#session.request(
      { ...headers, ':method': method, ':path': path },
      { endStream: body === undefined },
    );
    this.#streams += 1;
    this.#session.ref();
    if (body !== undefined) stream.end(body);
    return responseOf(stream, request, () => {
      this.#streams -= 1;
      if (this.#streams > 0) return;
      if (this.#retired) this.#session.close();
      else if (!this.#session.destroyed) this.#session.unref(); // an idle session must not keep the process alive
    });
  }

  retire(): void {
    this.#retired = true;
    if (this.#streams === 0) this.#session.close();
  }

  destroy(): void {
    this.#session.destroy();
  }

  #ping(): void {
    if (this.#session.destroyed) return;
    const late = setTimeout(
      () => this.#session.destroy(new Error('the server does not respond to pings')),
      this.#pingMs,
    ).unref();
    const sent = this.#session.ping(() => clearTimeout(late));
    if (!sent) clearTimeout(late); // the session is closing
  }
}

function responseOf(
  stream: ClientHttp2Stream,
  { signal, maxBytes }: TransportRequest,
  onEnd: () => void,
): Promise<TransportResponse> {
  return new Promise((resolve, reject) => {
    let responseBody: Body | undefined;
    let error: Error | undefined;
    const abort = (reason: unknown) => {
      error ??= toError(reason);
      stream.close(constants.NGHTTP2_CANCEL);
    };
    const follow = () => abort(signal?.reason);
    signal?.addEventListener('abort', follow, { once: true });
    const flow = {
      get paused() {
        return stream.isPaused();
      },
      pause: () => void stream.pause(),
      resume: () => void stream.resume(),
      abort,
    };
    stream.once('response', (headers) => {
      const status = headers[':status'] ?? 0;
      const body = new Body(flow, status, maxBytes);
      responseBody = body;
      stream.on('data', (chunk: Buffer) => body.push(chunk));
      resolve(body.response(status, headers));
    });
    stream.once('end', () => {
      // A reset stream also emits 'end', before it emits the error.
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR && error === undefined) responseBody?.end();
    });
    stream.on('error', (reason) => {
      error ??= reason;
    });
    stream.once('close', () => {
      signal?.removeEventListener('abort', follow);
      onEnd();
      const failure = error ?? new Error('the server closed the stream before the end of the response');
      if (responseBody === undefined) reject(failure);
      else responseBody.fail(failure); // does nothing if the body has ended
    });
  });
}
