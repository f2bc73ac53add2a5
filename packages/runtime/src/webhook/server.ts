import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Logger } from '../log/logger.ts';
import type { WebhookMetrics } from '../metrics/runtime-metrics.ts';
import type { Issued } from '../pki/certificate.ts';
import { type Answer, bodyOf, NOT_FOUND, notAllowed, RequestError } from '../server/answer.ts';
import { addressOf, answering, Listener } from '../server/listener.ts';
import { Deadline } from '../world/deadline.ts';
import type { Clock } from '../world/world.ts';
import { deadlineOf } from './deadline.ts';
import type { Endpoint } from './endpoints.ts';

export interface WebhookServerOptions {
  readonly clock: Pick<Clock, 'after' | 'monotonic'>;
  readonly logger: Logger;
  readonly endpoints: readonly Endpoint[];
  readonly metrics: (path: string) => WebhookMetrics;
  /** To begin with. */
  readonly certificate: Issued;
  /** 0 for any that is free. */
  readonly port: number;
  /** @default all addresses of this machine */
  readonly host?: string | undefined;
  /** How long `close` waits for answers under way. @default 30_000, the longest that the API server waits for one */
  readonly graceMs?: number;
}

/** Two objects, and the largest that the API server takes in are of 3 MB; lists to convert come in pages. */
const LARGEST_BODY = 32 * 1024 * 1024;

/**
 * Answers the API server's reviews over HTTPS.
 *
 * Guarantees: a body that is no review gets a status from 400 on and a sentence; no request ends the process; a handler
 * that hangs is given up while the API server still waits; another certificate is for connections to come, and cuts
 * none that there is.
 */
export class WebhookServer {
  readonly #options: WebhookServerOptions;
  readonly #server: Server;
  readonly #listener: Listener;
  readonly #routes: ReadonlyMap<string, { readonly endpoint: Endpoint; readonly metrics: WebhookMetrics }>;

  private constructor(options: WebhookServerOptions) {
    const { certificate, endpoints, metrics, logger, graceMs = 30_000 } = options;
    this.#options = options;
    this.#routes = new Map(
      endpoints.map((endpoint) => [endpoint.path, { endpoint, metrics: metrics(endpoint.path) }]),
    );
    this.#server = createServer(
      tlsOf(certificate),
      answering(logger, (request) => this.#answer(request)),
    );
    this.#listener = new Listener(this.#server, { ...options, graceMs, serves: 'webhooks' });
  }

  static async start(options: WebhookServerOptions): Promise<WebhookServer> {
    const server = new WebhookServer(options);
    await server.#listener.open();
    return server;
  }

  get port(): number {
    return this.#listener.port;
  }

  /** From now on, for new connections. */
  use(certificate: Issued): void {
    this.#server.setSecureContext(tlsOf(certificate));
  }

  close(): Promise<void> {
    return this.#listener.close();
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    const { pathname, searchParams } = addressOf(request);
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

  async #review(endpoint: Endpoint, request: IncomingMessage, timeout: string | null): Promise<Answer> {
    if (request.method !== 'POST') return notAllowed('POST');
    const [type = ''] = (request.headers['content-type'] ?? '').split(';');
    if (type.trim().toLowerCase() !== 'application/json')
      throw new RequestError(415, 'the content type must be application/json\n');
    const { clock } = this.#options;
    const deadline = new Deadline(clock, deadlineOf(timeout), undefined);
    const { promise: late, reject } = Promise.withResolvers<never>();
    // Not 504, for which the API server has words of its own; it shows the text of a 500. No denial either: its policy
    // for webhooks that fail is to decide.
    deadline.signal.addEventListener('abort', () =>
      reject(new RequestError(500, `${endpoint.path} has found no answer in time\n`)),
    );
    try {
      const body = jsonOf(await Promise.race([bodyOf(request, LARGEST_BODY), late]));
      const review = await Promise.race([endpoint.answer(body, deadline.signal), late]);
      return { status: 200, text: JSON.stringify(review), contentType: 'application/json' };
    } finally {
      deadline.end();
    }
  }
}

function tlsOf({ certificate, key }: Issued) {
  return { cert: certificate, key, minVersion: 'TLSv1.2' } as const;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError(400, 'the body is no JSON\n');
  }
}
