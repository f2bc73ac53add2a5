import type { IncomingMessage, Server } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { type Clock, isLevel, LEVELS, type Logger, type LogLevel, Registry } from '@vmwright/core';
import { type DebugEndpoints, isDebugPath } from '../debug/endpoints.ts';
import type { Issued } from '../pki/certificate.ts';
import { RequestBodies } from './bodies.ts';
import { Checks } from './checks.ts';
import { type HttpResponse, methodNotAllowed, NOT_FOUND, RequestError } from './http-response.ts';
import { HANDSHAKE_TIMEOUT_MS, Listener, requestListener, SERVER_TIMEOUTS, urlOf } from './listener.ts';

// Loaded without an ES import: an import of `node:http` loads Node's fetch, which costs 10 MB and 24 ms at each start.
const { createServer } = process.getBuiltinModule('node:http');
const { createServer: createTlsServer } = process.getBuiltinModule('node:https');

/** A path that a program adds to its status server. Serves GET and HEAD. */
export interface StatusRoute {
  /**
   * Clients that may read the path. With `anyone`, all clients may read it, as they may read `/healthz`. With `local`,
   * only clients on this machine may, including `kubectl port-forward`. Use `local` for details such as object names.
   */
  readonly for: 'anyone' | 'local';
  respond(): HttpResponse | Promise<HttpResponse>;
}

export interface StatusServerOptions {
  readonly clock: Pick<Clock, 'after'>;
  readonly logger: Logger;
  /** Port to listen on; 0 selects a free one. */
  readonly port: number;
  /** Address to listen on. @default all addresses */
  readonly host?: string;
  /** Metrics to serve at `/metrics`. @default the path is not served */
  readonly metrics?: Pick<Registry, 'text'> | undefined;
  /** Log level that `/debug/loglevel` shows and sets. @default the path is not served */
  readonly logLevel?: LogLevel | undefined;
  /**
   * Answers `/debug/queues`, `/debug/operations`, `/debug/profile` and `/debug/heap`. @default the paths are not served
   */
  readonly debug?: DebugEndpoints | undefined;
  /** Initial certificate for HTTPS. @default serves HTTP */
  readonly certificate?: Issued | undefined;
  /**
   * Checks access to `/metrics` and the paths below `/debug`, and throws a RequestError to reject a request. @default
   * if the server listens on a loopback address, allows all requests except `/debug/heap`; otherwise allows none
   */
  readonly authorize?: ((request: IncomingMessage, path: string) => Promise<void>) | undefined;
  /** Whether to serve `/metrics` without authentication. @default false */
  readonly openMetrics?: boolean | undefined;
  /** Additional routes, keyed by absolute path. @default none */
  readonly routes?: Readonly<Record<string, StatusRoute>> | undefined;
  /** Time that `close` waits for pending responses, in milliseconds. @default 5_000 */
  readonly graceMs?: number;
}

/** Maximum size of a request body in bytes. The server reads a body only to set the log level. */
const MAX_LEVEL_BYTES = 64;
/** Maximum number of connections; enough for probes and a few scrapers. */
const MAX_CONNECTIONS = 100;

/**
 * HTTP or HTTPS server for these paths:
 * - `/healthz` and `/readyz`, also with `?verbose`, with `?exclude=name` and for one check: `/healthz/name`
 * - `/metrics`
 * - `/debug/loglevel`: GET, and PUT with the level as body
 * - the paths of `DebugEndpoints`
 *
 * Health and readiness need no authorization. `/metrics` and the paths below `/debug` do (see `authorize` and
 * `openMetrics`).
 *
 * Guarantees: no request crashes the process. A failed check responds with 500, as in Kubernetes components. `close`
 * waits for pending responses.
 */
export class StatusServer implements AsyncDisposable {
  /** Liveness checks. Checks can be added at any time. */
  readonly health: Checks;
  /** Readiness checks. Checks can be added at any time. */
  readonly ready: Checks;
  readonly #options: StatusServerOptions;
  readonly #server: Server;
  readonly #listener: Listener;
  readonly #bodies = new RequestBodies(MAX_CONNECTIONS * MAX_LEVEL_BYTES);
  readonly #routes: ReadonlyMap<string, StatusRoute>;

  private constructor(options: StatusServerOptions) {
    this.#options = options;
    this.#routes = new Map(Object.entries(options.routes ?? {}));
    this.health = new Checks('healthz', options);
    this.ready = new Checks('readyz', options);
    const listener = requestListener(options.logger, (request) => this.#route(request));
    const { certificate } = options;
    this.#server =
      certificate === undefined
        ? createServer(SERVER_TIMEOUTS, listener)
        : createTlsServer(
            { ...SERVER_TIMEOUTS, handshakeTimeout: HANDSHAKE_TIMEOUT_MS, ...tlsOf(certificate) },
            listener,
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

  /** Replaces the certificate for new connections. Does nothing if the server uses HTTP. */
  use(certificate: Issued): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(tlsOf(certificate));
  }

  /** Accepts no new connections. Resolves when all requests are answered or `graceMs` has passed. */
  close(): Promise<void> {
    return this.#listener.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #route(request: IncomingMessage): Promise<HttpResponse> {
    const { metrics, logLevel, debug } = this.#options;
    const { pathname, searchParams } = urlOf(request);
    const [, first = '', second = '', ...more] = pathname.split('/');
    if (pathname === '/debug/loglevel' && logLevel !== undefined) {
      await this.#authorize(request, pathname);
      return this.#logLevel(request, logLevel);
    }
    if (debug !== undefined && isDebugPath(pathname)) {
      await this.#authorize(request, pathname);
      return debug.respond(pathname, request, searchParams);
    }
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const checks = first === 'healthz' ? this.health : first === 'readyz' ? this.ready : undefined;
    if (checks !== undefined && more.length === 0) {
      if (second !== '' && !checks.has(second)) return NOT_FOUND;
      if (!isRead) return methodNotAllowed('GET, HEAD');
      const { healthy, text } =
        second === ''
          ? await checks.report(new Set(searchParams.getAll('exclude')), searchParams.has('verbose'))
          : await checks.reportOne(second);
      return { status: healthy ? 200 : 500, text };
    }
    const route = this.#routes.get(pathname);
    if (route !== undefined) {
      if (route.for === 'local' && !isLoopback(request.socket.remoteAddress ?? ''))
        throw new RequestError(403, `${pathname} is open to local clients only; use kubectl port-forward\n`);
      return isRead ? route.respond() : methodNotAllowed('GET, HEAD');
    }
    if (pathname !== '/metrics' || metrics === undefined) return NOT_FOUND;
    if (!this.#options.openMetrics) await this.#authorize(request, pathname);
    return isRead
      ? { status: 200, text: metrics.text(), contentType: Registry.contentType }
      : methodNotAllowed('GET, HEAD');
  }

  async #authorize(request: IncomingMessage, path: string): Promise<void> {
    const { authorize, host = '' } = this.#options;
    if (authorize !== undefined) return authorize(request, path);
    // Respond with 403 instead of 401: a 401 would make clients send a token over an unencrypted connection. A heap
    // snapshot contains every Secret in memory, so even local users need a token for it.
    if (!isLoopback(host) || path === '/debug/heap')
      throw new RequestError(
        403,
        `${path} needs authentication, which this port does not support; use the HTTPS port\n`,
      );
  }

  async #logLevel(request: IncomingMessage, logLevel: LogLevel): Promise<HttpResponse> {
    if (request.method === 'PUT') {
      using body = await this.#bodies.read(request, { maxBytes: MAX_LEVEL_BYTES });
      const level = body.text.trim();
      if (!isLevel(level)) throw new RequestError(400, `the level must be one of ${LEVELS.join(', ')}\n`);
      logLevel.level = level;
    } else if (request.method !== 'GET' && request.method !== 'HEAD')
      return methodNotAllowed('GET, HEAD, PUT');
    return { status: 200, text: `${logLevel.level}\n` };
  }
}

function tlsOf({ certificate, key }: Issued) {
  return { cert: certificate, key, minVersion: 'TLSv1.2' } as const;
}

/** Returns whether an address of a server or a client is a loopback address. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^::ffff:/, ''); // an IPv4 client has this prefix on a server that listens on IPv6
  return (
    host === 'localhost' ||
    (isIP(address) !== 0 && LOOPBACK.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'))
  );
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');
