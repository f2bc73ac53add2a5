import type { IncomingMessage, ServerResponse } from 'node:http';

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

  constructor(status: number, message: string) {
    super(message);
    this.name = 'RequestError';
    this.status = status;
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

/** The body of a request that is not larger than that. */
export async function bodyOf(request: IncomingMessage, limit: number): Promise<string> {
  const tooLarge = () => new RequestError(413, `more than ${limit} bytes are not taken here\n`);
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  // Ending the loop early would otherwise end the connection, before our answer is on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > limit) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
