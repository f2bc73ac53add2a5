import type { IncomingMessage } from 'node:http';
import { isLevel, LEVELS, type Logger, type LogLevel } from '../log/logger.ts';
import { Registry } from '../metrics/registry.ts';
import type { Clock } from '../world/world.ts';
import { type Answer, NOT_FOUND, notAllowed, RequestError } from './answer.ts';
import { RequestBodies } from './bodies.ts';
import { Checks } from './checks.ts';
import { addressOf, answering, Listener, SERVER_TIMEOUTS } from './listener.ts';

// Not by `import`: as an ES module `node:http` loads Node's whole fetch, for the sake of a name that it passes on. That
// is 10 MB and 24 ms of each start.
const { createServer } = process.getBuiltinModule('node:http');

export interface StatusServerOptions {
  readonly clock: Pick<Clock, 'after'>;
  readonly logger: Logger;
  /** 0 for any that is free. */
  readonly port: number;
  /** @default all addresses of this machine */
  readonly host?: string;
  /** What `/metrics` answers; without it there is none. */
  readonly metrics?: Pick<Registry, 'text'> | undefined;
  /** The level that `/debug/loglevel` shows and sets; without it there is none. Whoever reaches the port may set it. */
  readonly logLevel?: LogLevel | undefined;
  /** How long `close` waits for answers under way. @default 5_000 */
  readonly graceMs?: number;
}

/** Maximum size of a body in bytes: the name of a log level. */
const MAX_LEVEL_BYTES = 64;
/** Maximum number of connections at a time: probes, a few scrapers. */
const MAX_CONNECTIONS = 100;

/**
 * Tells about the process over HTTP: `/metrics`, `/healthz`, `/readyz` (`?verbose`, `?exclude=name`, `/healthz/name`)
 * and, if wanted, `/debug/loglevel` (GET, PUT with the level as body).
 *
 * Guarantees: no request ends the process; a failing check answers 500, as in Kubernetes itself; `close` lets answers
 * under way end.
 */
export class StatusServer implements AsyncDisposable {
  /** Whether the process is to live on; add checks at any time. */
  readonly health: Checks;
  /** Whether it is ready to do its work. */
  readonly ready: Checks;
  readonly #options: StatusServerOptions;
  readonly #listener: Listener;
  readonly #bodies = new RequestBodies(MAX_CONNECTIONS * MAX_LEVEL_BYTES);

  private constructor(options: StatusServerOptions) {
    this.#options = options;
    this.health = new Checks('healthz', options);
    this.ready = new Checks('readyz', options);
    const server = createServer(
      SERVER_TIMEOUTS,
      answering(options.logger, (request) => this.#route(request)),
    );
    this.#listener = new Listener(server, {
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
    if (pathname === '/debug/loglevel' && logLevel !== undefined) return this.#logLevel(request, logLevel);
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
    return read
      ? { status: 200, text: metrics.text(), contentType: Registry.contentType }
      : notAllowed('GET, HEAD');
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
