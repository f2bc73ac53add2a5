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
import { assertClient, type ClientRules } from './client-rules.ts';
import type { Endpoint } from './endpoints.ts';
import { timeoutOf } from './timeout.ts';

export interface WebhookServerOptions {
  readonly clock: Pick<Clock, 'after' | 'monotonic'>;
  readonly logger: Logger;
  readonly endpoints: readonly Endpoint[];
  readonly metrics: (path: string) => WebhookMetrics;
  /** Initial certificate. */
  readonly certificate: Issued;
  /** Client certificates that are required for admission requests. @default none is required */
  readonly clients?: ClientRules | undefined;
  /** Port to listen on; 0 selects a free one. */
  readonly port: number;
  /** Address to listen on. @default all addresses */
  readonly host?: string | undefined;
  /** Time that `close` waits for pending reviews, in milliseconds. @default 30_000, the API server's maximum timeout */
  readonly graceMs?: number;
}

/** Maximum memory of all request bodies together, in bytes. */
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;
/**
 * Maximum number of connections. An API server uses one connection per concurrent request, by default at most 200 for
 * writes.
 */
const MAX_CONNECTIONS = 500;
/** Timeout for receiving a body. The API server sends it immediately. */
const BODY_TIMEOUT_MS = 10_000;

/**
 * HTTPS server for AdmissionReviews and ConversionReviews of the API server.
 *
 * Guarantees:
 * - An invalid review gets a 4xx status with an explanation.
 * - No request crashes the process.
 * - A review that takes too long fails while the API server still waits.
 * - A new certificate does not interrupt existing connections.
 * - The memory, connections and time that clients can use are limited.
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
        // Client certificates are checked per request and not in the handshake. Conversion requests have no
        // certificate, and a client that is rejected in the handshake gets no explanation.
        ...(clients && { requestCert: true, rejectUnauthorized: false }),
      },
      requestListener(logger, (request) => this.#handle(request)),
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

  /** Current memory of all request bodies, in bytes. */
  get heldBytes(): number {
    return this.#bodies.heldBytes;
  }

  /** Replaces the certificate for new connections. */
  use(certificate: Issued): void {
    this.#certificate = certificate;
    this.#server.setSecureContext(tlsOf(certificate, this.#clients));
  }

  /** Replaces the client CAs for new connections. Does nothing if client certificates are not required. */
  useClientCa(ca: string): void {
    if (this.#clients === undefined) return;
    this.#clients = { ...this.#clients, ca };
    this.#server.setSecureContext(tlsOf(this.#certificate, this.#clients));
  }

  close(): Promise<void> {
    return this.#listener.close();
  }

  async #handle(request: IncomingMessage): Promise<HttpResponse> {
    const { pathname, searchParams } = urlOf(request);
    const route = this.#routes.get(pathname);
    if (route === undefined) return NOT_FOUND;
    const { clock } = this.#options;
    const startedAt = clock.monotonic();
    const finished = route.metrics.started();
    let status = 500;
    try {
      const response = await this.#review(route.endpoint, request, searchParams.get('timeout'));
      status = response.status;
      return response;
    } catch (error) {
      if (error instanceof RequestError) status = error.status;
      throw error;
    } finally {
      finished(status, clock.monotonic() - startedAt);
    }
  }

  async #review(endpoint: Endpoint, request: IncomingMessage, timeout: string | null): Promise<HttpResponse> {
    const { clock } = this.#options;
    if (endpoint.authenticated) assertClient(request.socket, this.#clients);
    if (request.method !== 'POST') return methodNotAllowed('POST');
    const [type = ''] = (request.headers['content-type'] ?? '').split(';');
    if (type.trim().toLowerCase() !== 'application/json')
      throw new RequestError(415, 'the content type must be application/json\n');
    const timeoutMs = timeoutOf(timeout);
    const deadline = new Deadline(clock, timeoutMs, undefined);
    const { promise: timedOut, reject } = Promise.withResolvers<never>();
    // avoids an unhandled rejection if the deadline expires while the body is being received
    timedOut.catch(() => undefined);
    // Responds with 500 and not 504, because the API server shows only the text of a 500 to the user. The response is
    // an error and not a denial, so that the failurePolicy applies.
    deadline.signal.addEventListener('abort', () =>
      reject(new RequestError(500, `${endpoint.path} timed out after ${(timeoutMs / 1_000).toFixed(1)} s\n`)),
    );
    try {
      using body = await this.#read(request, endpoint.maxBytes, Math.min(timeoutMs, BODY_TIMEOUT_MS));
      const review = await Promise.race([endpoint.review(jsonOf(body.text), deadline.signal), timedOut]);
      return { status: 200, text: JSON.stringify(review), contentType: 'application/json' };
    } finally {
      deadline.end();
    }
  }

  async #read(request: IncomingMessage, maxBytes: number, timeoutMs: number): Promise<Body> {
    const { clock } = this.#options;
    const timeout = new AbortController();
    const timer = clock.after(timeoutMs, () =>
      timeout.abort(new RequestError(408, `the body was not received within ${timeoutMs / 1000} s\n`)),
    );
    try {
      return await this.#bodies.read(request, { maxBytes, signal: timeout.signal });
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
    throw new RequestError(400, 'the body is not valid JSON\n');
  }
}
