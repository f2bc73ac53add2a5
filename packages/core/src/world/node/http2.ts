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

/** Go's servers allow 100 to 250; one that allows fewer says so in its settings. */
const MOST_STREAMS = 100;
/** Of data that may be under way: the default of 64 KB would make a first list wait for each round trip. */
const STREAM_WINDOW = 1 << 20;
const SESSION_WINDOW = 1 << 22;

export interface Http2Options {
  readonly server: ServerAddress;
  readonly proxy?: HttpProxy | undefined;
  /** How often a connection is asked whether its other end is still there. @default 30_000 */
  readonly pingEveryMs?: number;
  /** How long that may take. @default 15_000 */
  readonly pingMs?: number;
}

/** The server does not speak HTTP/2. */
export class NoHttp2Error extends Error {}

/**
 * Many lasting answers over one connection.
 *
 * Guarantees: a connection that does not answer any more (a lost peer sends no reset) is found by pings and fails all
 * that goes over it; one that the server says farewell to (GOAWAY) is not used for anything new.
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
      // Nothing is awaited between the look and the use: of many that wait for a connection only so many may take it.
      for (const session of this.#sessions) {
        if (!session.hasRoom) continue;
        request.beforeSend?.();
        return session.send(request);
      }
      const session = await unlessAborted(this.#opened(), request.signal);
      if (!session.lives) throw new Error('the server has ended the connection at once');
    }
  }

  /** Takes nothing new; what is under way goes on. */
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
      throw new NoHttp2Error('the server does not speak HTTP/2');
    }
    const session = new Session(this.#options, socket, () => this.#sessions.delete(session));
    this.#sessions.add(session);
    if (this.#closed) session.destroy();
    return session;
  }
}

/** One connection. */
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
      // It is told a turn later, when the session may be over.
      if (!session.destroyed) session.setLocalWindowSize(SESSION_WINDOW);
    });
    session.on('goaway', () => this.retire());
    session.on('error', () => undefined); // each stream is told, and the session closes
    this.#pingMs = pingMs;
    const pinging = setInterval(() => this.#ping(), pingEveryMs).unref();
    session.once('close', () => {
      clearInterval(pinging);
      onClose();
    });
  }

  get hasRoom(): boolean {
    const { remoteSettings } = this.#session;
    const most = Math.min(remoteSettings?.maxConcurrentStreams ?? MOST_STREAMS, MOST_STREAMS);
    return this.lives && this.#streams < most;
  }

  /** Whether it takes anything new. */
  get lives(): boolean {
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
    return answerOf(stream, request, () => {
      this.#streams -= 1;
      if (this.#streams > 0) return;
      if (this.#retired) this.#session.close();
      else if (!this.#session.destroyed) this.#session.unref(); // who waits for nothing needs not stay for it
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
      () => this.#session.destroy(new Error('the other end has gone silent')),
      this.#pingMs,
    ).unref();
    const sent = this.#session.ping(() => clearTimeout(late));
    if (!sent) clearTimeout(late); // it is closing
  }
}

function answerOf(
  stream: ClientHttp2Stream,
  { signal, maxBytes }: TransportRequest,
  onEnd: () => void,
): Promise<TransportResponse> {
  return new Promise((resolve, reject) => {
    let answer: Body | undefined;
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
      answer = body;
      stream.on('data', (chunk: Buffer) => body.push(chunk));
      resolve(body.response(status, headers));
    });
    stream.once('end', () => {
      // A stream that is reset ends as well, before it says so.
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR && error === undefined) answer?.end();
    });
    stream.on('error', (reason) => {
      error ??= reason;
    });
    stream.once('close', () => {
      signal?.removeEventListener('abort', follow);
      onEnd();
      const broken = error ?? new Error('the server has cut the answer short');
      if (answer === undefined) reject(broken);
      else answer.fail(broken); // nothing to one that has ended
    });
  });
}
