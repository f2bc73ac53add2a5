import type { ServerResponse } from 'node:http';

/** What a request is answered with. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  /** @default 'text/plain; charset=utf-8' */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request that makes no sense; its message is the answer. */
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

export function notAllowed(methods: string): Answer {
  return { status: 405, text: `only ${methods} is served here\n`, headers: { allow: methods } };
}

export const NOT_FOUND: Answer = { status: 404, text: 'not found\n' };

export function send(response: ServerResponse, { status, text, contentType, headers }: Answer): void {
  response.writeHead(status, {
    'content-type': contentType ?? 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  response.end(text); // Node leaves the body out where HEAD was asked
}
