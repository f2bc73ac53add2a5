import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { type Logger, messageOf, systemCode } from '@vmwright/core';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { FORMATS } from './formats.ts';
import { operations } from './operations.ts';
import { PROBLEM_TYPE, Problem, type ProblemCode, problemBody } from './problems.ts';
import { problemIn } from './refusals.ts';
import { addRoutes, type RoutesOptions } from './routes.ts';

export type App = FastifyInstance<HttpsServer>;

export interface AppOptions extends RoutesOptions {
  readonly log: Logger;
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
}

const BODY_LIMIT = 64 * 1024;
/** For a request to come in whole: who sends a byte a minute must not hold a connection for ever. */
const REQUEST_TIMEOUT_MS = 30_000;
/** More than any name, so that one that is too long is told its rule and not that there is nothing. */
const LONGEST_PARAM = 1_000;

/** The API over HTTP or HTTPS, not listening yet. */
export function createApp(options: AppOptions): App {
  const { log, tls, metrics, faults } = options;
  const app: App = fastify({
    https: tls ?? null,
    bodyLimit: BODY_LIMIT,
    requestTimeout: REQUEST_TIMEOUT_MS,
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    return503OnClosing: false, // what comes over a connection that is still open is answered as ever
    routerOptions: { maxParamLength: LONGEST_PARAM },
    // Strict: a number where a text belongs, or a field that nobody knows, is somebody's mistake.
    ajv: {
      customOptions: {
        coerceTypes: false,
        removeAdditional: false,
        formats: FORMATS,
      },
    },
    frameworkErrors: (error, request, reply) => void refuse(problemIn(error, request), request, reply),
    clientErrorHandler: (error, socket) => refuseBytes(error, socket, faults !== undefined),
  });
  app.removeContentTypeParser('text/plain');

  const refuse = (
    problem: Problem | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): FastifyReply => {
    const told = problem ?? OUR_MISTAKE;
    return reply
      .code(told.status)
      .headers(told.options.headers ?? {})
      .type(PROBLEM_TYPE)
      .send(problemBody(told, request.id));
  };

  app.addHook('onRequest', async (_, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, id, routeOptions } = request;
    const route = pathOf(routeOptions.config);
    const seconds = Number((reply.elapsedTime / 1000).toFixed(6));
    metrics.answered(route ?? 'other', method, reply.statusCode, seconds);
    const level = route === undefined || !open.has(route) ? 'info' : 'debug'; // probes come every few seconds
    log[level]({ request: id, method, path: request.url, status: reply.statusCode, seconds }, 'answered');
  });
  app.setErrorHandler((error, request, reply) => {
    const problem = problemIn(error, request);
    if (problem === undefined || problem.code === 'UNAVAILABLE') {
      const stack = error instanceof Error ? error.stack : undefined;
      log.error({ request: request.id, error: messageOf(error), stack }, 'a request has failed');
    }
    return refuse(problem, request, reply);
  });
  app.setNotFoundHandler((request, reply) =>
    refuse(nothingAt(request, faults !== undefined), request, reply),
  );
  addRoutes(app, options);
  return app;
}

const OUR_MISTAKE = new Problem(
  'INTERNAL',
  'The cloud has made a mistake. Its log says more, under the id of this request.',
);

const open = new Set(operations(false).flatMap((each) => (each.open ? [each.path] : [])));

/** As the document has it; undefined for what is no path of ours. */
function pathOf(config: unknown): string | undefined {
  return typeof config === 'object' && config !== null && 'path' in config ? String(config.path) : undefined;
}

function nothingAt({ method, url }: Pick<FastifyRequest, 'method' | 'url'>, withFaults: boolean): Problem {
  const path = url.split('?', 1)[0] ?? '';
  const here = operations(withFaults).filter((each) => patternOf(each.path).test(path));
  if (here.length === 0)
    return new Problem(
      'NO_SUCH_PATH',
      'There is nothing at this path. GET /openapi.json says what there is.',
    );
  const allowed = here
    .flatMap((each) => (each.method === 'GET' ? ['GET', 'HEAD'] : [each.method]))
    .join(', ');
  return new Problem('METHOD_NOT_ALLOWED', `There is no ${method} here, only ${allowed}.`, {
    headers: { allow: allowed },
  });
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}

const BY_SYSTEM_CODE: Readonly<Record<string, readonly [ProblemCode, string]>> = {
  HPE_HEADER_OVERFLOW: ['HEADERS_TOO_LARGE', 'The headers are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['REQUEST_TIMEOUT', 'The request has not come in time.'],
};

/** Answers bytes that the HTTP parser rejects. */
function refuseBytes(error: Error, socket: Socket, withFaults: boolean): void {
  const code = systemCode(error);
  if (code !== 'ECONNRESET' && socket.writable) {
    const problem =
      code === 'HPE_INVALID_METHOD'
        ? unknownMethod(error, withFaults)
        : new Problem(
            ...(BY_SYSTEM_CODE[code ?? ''] ?? (['MALFORMED_REQUEST', 'This is no HTTP.'] as const)),
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

/** A request with a method that Node's parser does not know is a request all the same: 405, as for any other method. */
function unknownMethod(error: Error, withFaults: boolean): Problem {
  const packet = 'rawPacket' in error && Buffer.isBuffer(error.rawPacket) ? error.rawPacket : Buffer.alloc(0);
  const [, method, url] = REQUEST_LINE.exec(packet.toString('latin1')) ?? [];
  if (method === undefined || url === undefined) return new Problem('MALFORMED_REQUEST', 'This is no HTTP.');
  return nothingAt({ method, url }, withFaults);
}

/** Method (a token of RFC 9110), path and version. */
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) (\/\S*) HTTP\/1\.[01]\r?\n/;
