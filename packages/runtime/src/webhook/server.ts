import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type Clock, Deadline, type Logger } from '@vmwright/core';
import type { WebhookMetrics } from '../metrics/runtime-metrics.ts';
import type { Issued } from '../pki/certificate.ts';
import { type Body, RequestBodies } from '../server/bodies.ts';
import { type HttpResponse, methodNotAllowed, NOT_FOUND, RequestError } from '../server/http-response.ts';
import {
  HANDSHAKE_TIMEOUT_MS,
  Listener,
  requestListener,
  SERVER_TIMEOUTS,
  urlOf,
} from '../server/listener.ts';
import { assertClient, type ClientRules } from './clients.ts';
import { deadlineOf } from './deadline.ts';
import type { Endpoint } from './endpoints.ts';

export interface WebhookServerOptions {
  readonly clock: Pick<Clock, 'after' | 'monotonic'>;
  readonly logger: Logger;
  readonly endpoints: readonly Endpoint[];
  readonly metrics: (path: string) => WebhookMetrics;
  /** The first certificate to serve. */
  readonly certificate: Issued;
  /** Rejects admission requests of clients without a certificate of these authorities. @default asks for none */
  readonly clients?: ClientRules | undefined;
  /** 0 for any that is free. */
  readonly port: number;
  /** @default all addresses of this machine */
  readonly host?: string | undefined;
  /** How long `close` waits for answers under way. @default 30_000, the longest that the API server waits for one */
  readonly graceMs?: number;
}

/** Maximum number of bytes that all requests hold together, arriving and being answered. */
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;
/** Maximum number of connections. An API server has one for each request that it has under way, 200 writes by default. */
const MAX_CONNECTIONS = 500;
/** For a body to arrive. The API server sends it at once. */
const BODY_TIMEOUT_MS = 10_000;

/**
 * Answers the API server's reviews over HTTPS.
 *
 * Guarantees: a body that is no review gets a status from 400 on and a sentence; no request ends the process; a handler
 * that hangs is given up while the API server still waits; another certificate is for connections to come, and cuts
 * none that there is; memory, connections and time that clients can take are limited, whatever they send.
 */
export class WebhookServer {
  readonly #options: WebhookServerOptions;
  readonly #server: Server;
  readonly #listener: Listener;
  readonly #bodies = new RequestBodies(MAX_TOTAL_BYTES);
  #certificate: Issued;
  #clients: ClientRules | undefined;
  readonly #routes: ReadonlyMap<string, { readonly endpoint: Endpoint; readonly metrics: WebhookMetrics }>;

  private constructor(options: WebhookServerOptions) {
    const { certificate, clients, endpoints, metrics, logger, graceMs = 30_000 } = options;
    this.#options = options;
    this.#certificate = certificate;
    this.#clients = clients;
    this.#routes = new Map(
      endpoints.map((endpoint) => [endpoint.path, { endpoint, metrics: metrics(endpoint.path) }]),
    );
    this.#server = createServer(
      {
        ...tlsOf(certificate, clients),
        ...SERVER_TIMEOUTS,
        handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
        // Not rejected in the handshake: the client would get no reason, and conversions come without a certificate.
        ...(clients && { requestCert: true, rejectUnauthorized: false }),
      },
      requestListener(logger, (request) => this.#answer(request)),
    );
    this.#listener = new Listener(this.#server, {
      ...options,
      graceMs,
      serves: 'webhooks',
      maxConnections: MAX_CONNECTIONS,
    });
  }

  static async start(options: WebhookServerOptions): Promise<WebhookServer> {
    const server = new WebhookServer(options);
    await server.#listener.open();
    return server;
  }

  get port(): number {
    return this.#listener.port;
  }

  /** Bytes that requests hold now, arriving and being answered. */
  get heldBytes(): number {
    return this.#bodies.heldBytes;
  }

  /** Serves another certificate from now on, on new connections. */
  use(certificate: Issued): void {
    this.#certificate = certificate;
    this.#server.setSecureContext(tlsOf(certificate, this.#clients));
  }

  /** Accepts certificates of these authorities from now on, on new connections; only where it asks for certificates. */
  useClientCa(ca: string): void {
    if (this.#clients === undefined) return;
    this.#clients = { ...this.#clients, ca };
    this.#server.setSecureContext(tlsOf(this.#certificate, this.#clients));
  }

  close(): Promise<void> {
    return this.#listener.close();
  }

  async #answer(request: IncomingMessage): Promise<HttpResponse> {
    const { pathname, searchParams } = urlOf(request);
    const route = this.#routes.get(pathname);
    if (route === undefined) return NOT_FOUND;
    const { clock } = this.#options;
    const began = clock.monotonic();
    const finished = route.metrics.started();
    let status = 500;
    try {
      const answer = await this.#review(route.endpoint, request, searchParams.get('timeout'));
      status = answer.status;
      return answer;
    } catch (error) {
      if (error instanceof RequestError) status = error.status;
      throw error;
    } finally {
      finished(status, clock.monotonic() - began);
    }
  }

  async #review(endpoint: Endpoint, request: IncomingMessage, timeout: string | null): Promise<HttpResponse> {
    const { clock } = this.#options;
    if (endpoint.authenticated) assertClient(request.socket, this.#clients);
    if (request.method !== 'POST') return methodNotAllowed('POST');
    const [type = ''] = (request.headers['content-type'] ?? '').split(';');
    if (type.trim().toLowerCase() !== 'application/json')
      throw new RequestError(415, 'the content type must be application/json\n');
    const timeoutMs = deadlineOf(timeout);
    const deadline = new Deadline(clock, timeoutMs, undefined);
    const { promise: late, reject } = Promise.withResolvers<never>();
    late.catch(() => undefined); // the body may arrive too late for anything to wait for it
    // Not 504, for which the API server has words of its own; it shows the text of a 500. No denial either: its policy
    // for webhooks that fail is to decide.
    deadline.signal.addEventListener('abort', () =>
      reject(new RequestError(500, `${endpoint.path} has found no answer in time\n`)),
    );
    try {
      using body = await this.#read(request, endpoint.maxBytes, Math.min(timeoutMs, BODY_TIMEOUT_MS));
      const review = await Promise.race([endpoint.answer(jsonOf(body.text), deadline.signal), late]);
      return { status: 200, text: JSON.stringify(review), contentType: 'application/json' };
    } finally {
      deadline.end();
    }
  }

  async #read(request: IncomingMessage, maxBytes: number, timeoutMs: number): Promise<Body> {
    const { clock } = this.#options;
    const late = new AbortController();
    const timer = clock.after(timeoutMs, () =>
      late.abort(new RequestError(408, `the body did not arrive within ${timeoutMs / 1000} s\n`)),
    );
    try {
      return await this.#bodies.read(request, { maxBytes, signal: late.signal });
    } finally {
      timer.cancel();
    }
  }
}

function tlsOf({ certificate, key }: Issued, clients: ClientRules | undefined) {
  return { cert: certificate, key, ...(clients && { ca: clients.ca }), minVersion: 'TLSv1.2' } as const;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError(400, 'the body is no JSON\n');
  }
}
