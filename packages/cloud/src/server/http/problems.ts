/** What can go wrong, by its stable code. */
export const PROBLEMS = {
  MALFORMED_REQUEST: { status: 400, title: 'The request cannot be read' },
  UNAUTHORIZED: { status: 401, title: 'No valid API key' },
  PROHIBITED_NAME: { status: 403, title: 'The name is prohibited' },
  NOT_FOUND: { status: 404, title: 'There is no such server' },
  NO_SUCH_PATH: { status: 404, title: 'There is nothing at this path' },
  METHOD_NOT_ALLOWED: { status: 405, title: 'The path does not have this method' },
  REQUEST_TIMEOUT: { status: 408, title: 'The request has not come in time' },
  NAME_TAKEN: { status: 409, title: 'Another server has the name' },
  SERVER_GONE: { status: 410, title: 'The server of this key was deleted' },
  BODY_TOO_LARGE: { status: 413, title: 'The body is too large' },
  PATH_TOO_LONG: { status: 414, title: 'A part of the path is too long' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, title: 'The body is not JSON' },
  INVALID_REQUEST: { status: 422, title: 'The request breaks a rule' },
  INVALID_NAME: { status: 422, title: 'This is no name for a server' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, title: 'The key was used for another request' },
  TOO_MANY_REQUESTS: { status: 429, title: 'Too many requests' },
  HEADERS_TOO_LARGE: { status: 431, title: 'The headers are too large' },
  INTERNAL: { status: 500, title: 'The cloud has made a mistake' },
  UNAVAILABLE: { status: 503, title: 'The cloud is not able to right now' },
} as const satisfies Record<string, { readonly status: number; readonly title: string }>;

export type ProblemCode = keyof typeof PROBLEMS;

/** What a problem says beyond its kind. */
interface ProblemExtras {
  /** Of the server that it is about. */
  readonly serverId?: string;
}

export interface ProblemOptions extends ProblemExtras {
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer that is no success. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly options: ProblemOptions;

  /** @param detail what is wrong here, and what to do */
  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(detail);
    this.name = 'Problem';
    this.code = code;
    this.options = options;
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }
}

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

/** As RFC 9457 has it. `instance` names the request: it is in the log under the same id. */
export function problemBody({ code, message, options: { serverId } }: Problem, requestId: string): string {
  const { status, title } = PROBLEMS[code];
  const type = typeOf(code);
  const instance = `urn:uuid:${requestId}`;
  return JSON.stringify({ type, title, status, detail: message, instance, code, serverId });
}

function typeOf(code: ProblemCode): string {
  return `urn:vmwright:cloud:${code.toLowerCase().replaceAll('_', '-')}`;
}
