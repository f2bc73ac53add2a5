import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Logger } from '@vmwright/core';
import { messageOf, systemCode } from '@vmwright/core';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { toProblem } from './error-mapping.ts';
import { FORMATS } from './formats.ts';
import { operations } from './operations.ts';
import { PROBLEM_TYPE, Problem, type ProblemCode, problemBody } from './problems.ts';
import { addRoutes, type RoutesOptions } from './routes.ts';

export type App = FastifyInstance<HttpsServer>;

export interface AppOptions extends RoutesOptions {
  readonly log: Logger;
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
}

const BODY_LIMIT = 64 * 1024;
/** Maximum time to receive a whole request, so that a slow client cannot hold a connection forever. */
const REQUEST_TIMEOUT_MS = 30_000;
/**
 * Maximum length of a path parameter, enforced by the router. It is much larger than the maximum length of a name, so
 * that the schema rejects most names that are too long. Only the error of the schema states the rule for names.
 */
const MAX_PARAM_LENGTH = 1_000;

/** Creates the HTTP or HTTPS server of the API. It does not listen yet. */
export function createApp(options: AppOptions): App {
  const { log, tls, metrics, faults } = options;
  const app: App = fastify({
    https: tls ?? null,
    bodyLimit: BODY_LIMIT,
    requestTimeout: REQUEST_TIMEOUT_MS,
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    return503OnClosing: false, // requests on open connections are still served during shutdown
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    // Wrong types and unknown fields are errors; fastify's defaults convert or remove them.
    ajv: {
      customOptions: {
        coerceTypes: false,
        removeAdditional: false,
        formats: FORMATS,
      },
    },
    frameworkErrors: (error, request, reply) => void sendProblem(toProblem(error, request), request, reply),
    clientErrorHandler: (error, socket) => rejectConnection(error, socket, faults !== undefined),
  });
  app.removeContentTypeParser('text/plain');

  const sendProblem = (
    problem: Problem | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): FastifyReply => {
    const sent = problem ?? INTERNAL_ERROR;
    return reply
      .code(sent.status)
      .headers(sent.options.headers ?? {})
      .type(PROBLEM_TYPE)
      .send(problemBody(sent, request.id));
  };

  app.addHook('onRequest', async (_, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, id, routeOptions } = request;
    const route = pathOf(routeOptions.config);
    const seconds = Number((reply.elapsedTime / 1000).toFixed(6));
    metrics.requestHandled(route ?? 'other', method, reply.statusCode, seconds);
    // Probes and scrapes are logged at debug level, so that they do not fill the log.
    const level = route === undefined || !openPaths.has(route) ? 'info' : 'debug';
    log[level](
      { request: id, method, path: request.url, status: reply.statusCode, seconds },
      'Handled request',
    );
  });
  app.setErrorHandler((error, request, reply) => {
    const problem = toProblem(error, request);
    if (problem === undefined || problem.code === 'UNAVAILABLE') {
      const stack = error instanceof Error ? error.stack : undefined;
      log.error({ request: request.id, error: messageOf(error), stack }, 'Request failed');
    }
    return sendProblem(problem, request, reply);
  });
  app.setNotFoundHandler((request, reply) =>
    sendProblem(routeNotFound(request, faults !== undefined), request, reply),
  );
  addRoutes(app, options);
  return app;
}

const INTERNAL_ERROR = new Problem(
  'INTERNAL',
  'The cloud failed to handle the request. The log of the cloud has the error under the request id in `instance`.',
);

/** Paths that need no API key. */
const openPaths = new Set(operations(false).flatMap((each) => (each.open ? [each.path] : [])));

/** Returns the path template in the config of a route, such as `/servers/{id}`; undefined if no route was found. */
function pathOf(config: unknown): string | undefined {
  return typeof config === 'object' && config !== null && 'path' in config ? String(config.path) : undefined;
}

/** Returns 404 for an unknown path and 405 for a known path without this method. */
function routeNotFound(
  { method, url }: Pick<FastifyRequest, 'method' | 'url'>,
  withFaults: boolean,
): Problem {
  const path = url.split('?', 1)[0] ?? '';
  const matching = operations(withFaults).filter((each) => patternOf(each.path).test(path));
  if (matching.length === 0)
    return new Problem(
      'NO_SUCH_PATH',
      'No operation exists at this path. GET /openapi.json lists all operations.',
    );
  const allowed = matching
    .flatMap((each) => (each.method === 'GET' ? ['GET', 'HEAD'] : [each.method]))
    .join(', ');
  return new Problem(
    'METHOD_NOT_ALLOWED',
    `Method ${method} is not allowed on this path; allowed: ${allowed}.`,
    {
      headers: { allow: allowed },
    },
  );
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}

const BY_SYSTEM_CODE: Readonly<Record<string, readonly [ProblemCode, string]>> = {
  HPE_HEADER_OVERFLOW: ['HEADERS_TOO_LARGE', 'The request headers are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['REQUEST_TIMEOUT', 'The request was not received in time.'],
};

/** Responds to bytes that the HTTP parser rejects, and closes the connection. */
function rejectConnection(error: Error, socket: Socket, withFaults: boolean): void {
  const code = systemCode(error);
  if (code !== 'ECONNRESET' && socket.writable) {
    const problem =
      code === 'HPE_INVALID_METHOD'
        ? unknownMethod(error, withFaults)
        : new Problem(
            ...(BY_SYSTEM_CODE[code ?? ''] ??
              (['MALFORMED_REQUEST', 'The request is not valid HTTP.'] as const)),
          );
    const body = problemBody(problem, randomUUID());
    const headers = {
      ...problem.options.headers,
      'content-type': PROBLEM_TYPE,
      'content-length': Buffer.byteLength(body),
      connection: 'close',
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(
      `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`,
    );
  }
  socket.destroy();
}

/**
 * Returns the problem for a request with a method that Node's HTTP parser rejects: 400 if the request line is invalid,
 * otherwise the result of `routeNotFound` (404 or 405).
 */
function unknownMethod(error: Error, withFaults: boolean): Problem {
  const packet = 'rawPacket' in error && Buffer.isBuffer(error.rawPacket) ? error.rawPacket : Buffer.alloc(0);
  const [, method, url] = REQUEST_LINE.exec(packet.toString('latin1')) ?? [];
  if (method === undefined || url === undefined)
    return new Problem('MALFORMED_REQUEST', 'The request is not valid HTTP.');
  return routeNotFound({ method, url }, withFaults);
}

/** Request line: method (an RFC 9110 token), path and version. */
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) (\/\S*) HTTP\/1\.[01]\r?\n/;
