/** Status and title of every problem, by its stable code. */
export const PROBLEMS = {
  MALFORMED_REQUEST: { status: 400, title: 'Malformed request' },
  UNAUTHORIZED: { status: 401, title: 'Missing or invalid API key' },
  PROHIBITED_NAME: { status: 403, title: 'Prohibited name' },
  NOT_FOUND: { status: 404, title: 'Server not found' },
  NO_SUCH_PATH: { status: 404, title: 'Path not found' },
  METHOD_NOT_ALLOWED: { status: 405, title: 'Method not allowed' },
  REQUEST_TIMEOUT: { status: 408, title: 'Request timeout' },
  NAME_TAKEN: { status: 409, title: 'Name already taken' },
  SERVER_GONE: { status: 410, title: 'Server of the idempotency key was deleted' },
  BODY_TOO_LARGE: { status: 413, title: 'Request body too large' },
  PATH_TOO_LONG: { status: 414, title: 'Path segment too long' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, title: 'Unsupported media type' },
  INVALID_REQUEST: { status: 422, title: 'Invalid request' },
  INVALID_NAME: { status: 422, title: 'Invalid server name' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, title: 'Idempotency key used with a different request' },
  TOO_MANY_REQUESTS: { status: 429, title: 'Too many requests' },
  HEADERS_TOO_LARGE: { status: 431, title: 'Request headers too large' },
  INTERNAL: { status: 500, title: 'Internal error' },
  UNAVAILABLE: { status: 503, title: 'Service unavailable' },
} as const satisfies Record<string, { readonly status: number; readonly title: string }>;

export type ProblemCode = keyof typeof PROBLEMS;

/** Optional members of a problem document. */
interface ProblemExtras {
  /** Id of the server that the problem refers to. */
  readonly serverId?: string;
}

export interface ProblemOptions extends ProblemExtras {
  /** Additional response headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Error that is sent to the client as problem details (RFC 9457). */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly options: ProblemOptions;

  /** @param detail what is wrong with this request, and what the client can do */
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

/** Serializes a problem (RFC 9457). `instance` contains the request id, which is also in the log. */
export function problemBody({ code, message, options: { serverId } }: Problem, requestId: string): string {
  const { status, title } = PROBLEMS[code];
  const type = typeOf(code);
  const instance = `urn:uuid:${requestId}`;
  return JSON.stringify({ type, title, status, detail: message, instance, code, serverId });
}

function typeOf(code: ProblemCode): string {
  return `urn:vmwright:cloud:${code.toLowerCase().replaceAll('_', '-')}`;
}
