import type { IncomingMessage, Server } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { type Clock, isLevel, LEVELS, type Logger, type LogLevel, Registry } from '@vmwright/core';
import type { Issued } from '../pki/certificate.ts';
import { type Answer, NOT_FOUND, notAllowed, RequestError } from './answer.ts';
import { RequestBodies } from './bodies.ts';
import { Checks } from './checks.ts';
import { addressOf, answering, HANDSHAKE_TIMEOUT_MS, Listener, SERVER_TIMEOUTS } from './listener.ts';

// Not by `import`: as an ES module `node:http` loads Node's whole fetch, for the sake of a name that it passes on. That
// is 10 MB and 24 ms of each start.
const { createServer } = process.getBuiltinModule('node:http');
const { createServer: createTlsServer } = process.getBuiltinModule('node:https');

export interface StatusServerOptions {
  readonly clock: Pick<Clock, 'after'>;
  readonly logger: Logger;
  /** 0 for any that is free. */
  readonly port: number;
  /** @default all addresses of this machine */
  readonly host?: string;
  /** What `/metrics` answers; without it there is none. */
  readonly metrics?: Pick<Registry, 'text'> | undefined;
  /** The level that `/debug/loglevel` shows and sets; without it there is none. */
  readonly logLevel?: LogLevel | undefined;
  /** Serves HTTPS with this certificate, for a start. @default HTTP */
  readonly certificate?: Issued | undefined;
  /**
   * Lets clients in to `/metrics` and `/debug/loglevel`; throws a RequestError for others. @default on a loopback address
   * everybody, on others nobody
   */
  readonly authorize?: ((request: IncomingMessage, path: string) => Promise<void>) | undefined;
  /** Serves `/metrics` to everybody who reaches the port. @default false */
  readonly openMetrics?: boolean | undefined;
  /** How long `close` waits for answers under way. @default 5_000 */
  readonly graceMs?: number;
}

/** Maximum size of a body in bytes: the name of a log level. */
const MAX_LEVEL_BYTES = 64;
/** Maximum number of connections at a time: probes, a few scrapers. */
const MAX_CONNECTIONS = 100;

/**
 * Serves metrics, health and the log level over HTTP: `/metrics`, `/healthz`, `/readyz` (`?verbose`, `?exclude=name`, `/healthz/name`)
 * and, if wanted, `/debug/loglevel` (GET, PUT with the level as body).
 *
 * Guarantees: no request ends the process; a failing check answers 500, as in Kubernetes itself; `close` lets answers
 * under way end. Only health and readiness are open to everybody who reaches the port, unless it is a loopback address.
 */
export class StatusServer implements AsyncDisposable {
  /** Whether the process is to live on; add checks at any time. */
  readonly health: Checks;
  /** Whether it is ready to do its work. */
  readonly ready: Checks;
  readonly #options: StatusServerOptions;
  readonly #server: Server;
  readonly #listener: Listener;
  readonly #bodies = new RequestBodies(MAX_CONNECTIONS * MAX_LEVEL_BYTES);

  private constructor(options: StatusServerOptions) {
    this.#options = options;
    this.health = new Checks('healthz', options);
    this.ready = new Checks('readyz', options);
    const answer = answering(options.logger, (request) => this.#route(request));
    const { certificate } = options;
    this.#server =
      certificate === undefined
        ? createServer(SERVER_TIMEOUTS, answer)
        : createTlsServer(
            { ...SERVER_TIMEOUTS, handshakeTimeout: HANDSHAKE_TIMEOUT_MS, ...tlsOf(certificate) },
            answer,
          );
    this.#listener = new Listener(this.#server, {
      ...options,
      serves: 'metrics and health',
      maxConnections: MAX_CONNECTIONS,
    });
  }

  static async start(options: StatusServerOptions): Promise<StatusServer> {
    const server = new StatusServer(options);
    await server.#listener.open();
    return server;
  }

  get port(): number {
    return this.#listener.port;
  }

  /** Serves another certificate from now on, on new connections; only where it serves HTTPS. */
  use(certificate: Issued): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(tlsOf(certificate));
  }

  /** Takes no more requests; resolves when those there are have been answered, or have had their time. */
  close(): Promise<void> {
    return this.#listener.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #route(request: IncomingMessage): Promise<Answer> {
    const { metrics, logLevel } = this.#options;
    const { pathname, searchParams } = addressOf(request);
    const [, first = '', second = '', ...more] = pathname.split('/');
    if (pathname === '/debug/loglevel' && logLevel !== undefined) {
      await this.#authorize(request, pathname);
      return this.#logLevel(request, logLevel);
    }
    const read = request.method === 'GET' || request.method === 'HEAD';
    const checks = first === 'healthz' ? this.health : first === 'readyz' ? this.ready : undefined;
    if (checks !== undefined && more.length === 0) {
      if (second !== '' && !checks.has(second)) return NOT_FOUND;
      if (!read) return notAllowed('GET, HEAD');
      const { healthy, text } =
        second === ''
          ? await checks.report(new Set(searchParams.getAll('exclude')), searchParams.has('verbose'))
          : await checks.reportOne(second);
      return { status: healthy ? 200 : 500, text };
    }
    if (pathname !== '/metrics' || metrics === undefined) return NOT_FOUND;
    if (!this.#options.openMetrics) await this.#authorize(request, pathname);
    return read
      ? { status: 200, text: metrics.text(), contentType: Registry.contentType }
      : notAllowed('GET, HEAD');
  }

  async #authorize(request: IncomingMessage, path: string): Promise<void> {
    const { authorize, host = '' } = this.#options;
    if (authorize !== undefined) return authorize(request, path);
    // Not 401: that would invite clients to send a token unencrypted.
    if (!isLoopback(host)) throw new RequestError(403, `${path} is not open on this port\n`);
  }

  async #logLevel(request: IncomingMessage, logLevel: LogLevel): Promise<Answer> {
    if (request.method === 'PUT') {
      using body = await this.#bodies.read(request, { maxBytes: MAX_LEVEL_BYTES });
      const level = body.text.trim();
      if (!isLevel(level)) throw new RequestError(400, `the level must be one of ${LEVELS.join(', ')}\n`);
      logLevel.level = level;
    } else if (request.method !== 'GET' && request.method !== 'HEAD') return notAllowed('GET, HEAD, PUT');
    return { status: 200, text: `${logLevel.level}\n` };
  }
}

function tlsOf({ certificate, key }: Issued) {
  return { cert: certificate, key, minVersion: 'TLSv1.2' } as const;
}

/** Whether only this machine reaches a server that listens there. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && LOOPBACK.check(host, isIPv6(host) ? 'ipv6' : 'ipv4'));
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');
