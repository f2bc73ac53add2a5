import type { ServerResponse } from 'node:http';
import { pipeline, type Readable } from 'node:stream';

/** Response to a request. */
export interface HttpResponse {
  readonly status: number;
  /** Body. A stream is closed when all of it has been sent, or when the client has disconnected. */
  readonly text: string | Readable;
  /** @default 'text/plain; charset=utf-8' */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown when a request is rejected. The message becomes the response body. */
export class RequestError extends Error {
  readonly code = 'BAD_REQUEST';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = 'RequestError';
    this.status = status;
    this.headers = headers;
  }
}

export function methodNotAllowed(methods: string): HttpResponse {
  return { status: 405, text: `method not allowed; use ${methods}\n`, headers: { allow: methods } };
}

export const NOT_FOUND: HttpResponse = { status: 404, text: 'not found\n' };

export function send(response: ServerResponse, { status, text, contentType, headers }: HttpResponse): void {
  response.writeHead(status, {
    'content-type': contentType ?? 'text/plain; charset=utf-8',
    ...(typeof text === 'string' && { 'content-length': Buffer.byteLength(text) }),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  if (typeof text === 'string')
    response.end(text); // Node omits the body in response to HEAD
  else pipeline(text, response, () => undefined); // ignores clients that disconnect early
}
