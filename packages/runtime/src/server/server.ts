import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { messageOf } from '../errors.ts';
import { isLevel, LEVELS, type Logger, type LogLevel } from '../log/logger.ts';
import { Registry } from '../metrics/registry.ts';
import type { Clock } from '../world/world.ts';
import { type Answer, bodyOf, NOT_FOUND, notAllowed, RequestError, send } from './answer.ts';
import { Checks } from './checks.ts';

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

/** Something about the server itself: its port is taken. */
export class ServerError extends Error {
  readonly code = 'SERVER';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ServerError';
  }
}

const LARGEST_LEVEL = 64;

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
  readonly #server: Server;
  #closing: Promise<void> | undefined;

  private constructor(options: StatusServerOptions) {
    this.#options = options;
    this.health = new Checks('healthz', options);
    this.ready = new Checks('readyz', options);
    this.#server = createServer((request, response) => {
      // A client that leaves early is no error of ours.
      response.on('error', () => undefined);
      this.#answer(request).then(
        (answer) => send(response, answer),
        (error) => {
          options.logger.error({ path: request.url, error }, 'could not answer a request');
          send(response, { status: 500, text: 'internal error; see the log\n' });
        },
      );
    });
  }

  static async start(options: StatusServerOptions): Promise<StatusServer> {
    const server = new StatusServer(options);
    const { port, host } = options;
    server.#server.listen(host === undefined ? { port } : { port, host });
    try {
      await once(server.#server, 'listening');
    } catch (error) {
      const where = `${host ?? '*'}:${port}`;
      throw new ServerError(`cannot serve metrics and health on ${where}: ${messageOf(error)}`, {
        cause: error,
      });
    }
    return server;
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
      const timer = clock.after(graceMs, () => this.#server.closeAllConnections());
      this.#server.close(() => {
        timer.cancel();
        resolve();
      });
    });
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    try {
      return await this.#route(request);
    } catch (error) {
      if (error instanceof RequestError) return { status: error.status, text: error.message, headers: CLOSE };
      throw error;
    }
  }

  async #route(request: IncomingMessage): Promise<Answer> {
    const { metrics, logLevel } = this.#options;
    const { pathname, searchParams } = addressOf(request);
    const [, first = '', second = '', ...more] = pathname.split('/');
    if (pathname === '/debug/loglevel' && logLevel !== undefined) return setOrTell(request, logLevel);
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
}

/** What is left of a body that was not read would be taken for the next request. */
const CLOSE = { connection: 'close' };

function addressOf({ url = '' }: IncomingMessage): URL {
  const address = url.startsWith('/') ? `http://server${url}` : url;
  if (!URL.canParse(address)) throw new RequestError(400, 'the address makes no sense\n');
  return new URL(address);
}

async function setOrTell(request: IncomingMessage, logLevel: LogLevel): Promise<Answer> {
  if (request.method === 'PUT') {
    const wanted = (await bodyOf(request, LARGEST_LEVEL)).trim();
    if (!isLevel(wanted)) throw new RequestError(400, `the level must be one of ${LEVELS.join(', ')}\n`);
    logLevel.level = wanted;
  } else if (request.method !== 'GET' && request.method !== 'HEAD') return notAllowed('GET, HEAD, PUT');
  return { status: 200, text: `${logLevel.level}\n` };
}
