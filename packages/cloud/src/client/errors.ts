export interface ErrorDetails {
  /** HTTP status. */
  readonly status: number;
  /** Problem code of the cloud, such as `NAME_TAKEN`; undefined when the response is not a problem document. */
  readonly problem?: string | undefined;
  /** `detail` of the cloud's problem document. */
  readonly detail?: string | undefined;
  /** Id of the server that the error refers to. */
  readonly serverId?: string | undefined;
  /** Requested delay before the next request, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** Error response of the cloud. Base class of the more specific errors. */
export class CloudError extends Error {
  /** Stable error code. */
  readonly code: string = 'CLOUD';
  readonly status: number;
  readonly problem: string | undefined;
  /**
   * The cloud's own description of the error, for use in a status; the message of this error if the cloud sent none.
   */
  readonly detail: string;

  constructor(message: string, { status, problem, detail = message }: ErrorDetails) {
    super(message);
    this.name = new.target.name;
    this.status = status;
    this.problem = problem;
    this.detail = detail;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return false;
  }
}

/** Error after which the same request may succeed later. */
export class RetryableError extends CloudError {
  /** Requested delay before the next request, in milliseconds; undefined when the response has no Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, details: ErrorDetails) {
    super(message, details);
    this.retryAfterMs = details.retryAfterMs;
  }

  override get retryable(): boolean {
    return true;
  }
}

/** Thrown for 403: the cloud prohibits the name. */
export class ProhibitedNameError extends CloudError {
  override readonly code = 'PROHIBITED_NAME';
}

/** Thrown for 409: another server has the name. `serverId` is the id of that server. */
export class NameTakenError extends CloudError {
  override readonly code = 'NAME_TAKEN';
  readonly serverId: string;

  constructor(message: string, details: ErrorDetails & { readonly serverId: string }) {
    super(message, details);
    this.serverId = details.serverId;
  }
}

/**
 * Thrown for 400, 413, 415 and 422: the request is invalid, and a retry does not help. `problem` has the exact code.
 */
export class InvalidRequestError extends CloudError {
  override readonly code = 'INVALID_REQUEST';
}

/** Thrown for 404: the server does not exist, or no longer exists. */
export class NotFoundError extends CloudError {
  override readonly code = 'NOT_FOUND';
}

/**
 * Thrown for 410: the server that was created with this idempotency key was deleted. `serverId` is the id of that
 * server. The key cannot create another server.
 */
export class GoneError extends CloudError {
  override readonly code = 'GONE';
  readonly serverId: string | undefined;

  constructor(message: string, details: ErrorDetails) {
    super(message, details);
    this.serverId = details.serverId;
  }
}

/** Thrown for 401: the API key is wrong. */
export class UnauthorizedError extends CloudError {
  override readonly code = 'UNAUTHORIZED';
}

/** Thrown for 429: the cloud rejected the request without executing it. */
export class TooManyRequestsError extends RetryableError {
  override readonly code = 'TOO_MANY_REQUESTS';
}

/** Thrown for 5xx: the cloud failed. The request may or may not have been executed. */
export class UnavailableError extends RetryableError {
  override readonly code = 'UNAVAILABLE';
}

/** Thrown for a response that the cloud's API never sends. A proxy or another program may have sent it. */
export class UnexpectedAnswerError extends CloudError {
  override readonly code = 'UNEXPECTED_ANSWER';
}

/** Thrown when no response arrived (refused, reset, timed out). The request may or may not have been executed. */
export class ConnectionError extends Error {
  readonly code = 'CONNECTION';
  readonly retryable = true;

  constructor(message: string) {
    super(message);
    this.name = 'ConnectionError';
  }
}

const BY_STATUS: Readonly<Record<number, typeof CloudError>> = {
  400: InvalidRequestError,
  401: UnauthorizedError,
  403: ProhibitedNameError,
  404: NotFoundError,
  410: GoneError,
  413: InvalidRequestError,
  415: InvalidRequestError,
  422: InvalidRequestError,
};

/**
 * The HTTP status of each of these problem codes. If one of these statuses comes without its problem code, a proxy may
 * have sent it. The response then becomes an UnexpectedAnswerError.
 */
const STATUS_BY_PROBLEM: ReadonlyMap<string, number> = new Map([
  ['PROHIBITED_NAME', 403],
  ['NOT_FOUND', 404],
  ['NAME_TAKEN', 409],
  ['SERVER_GONE', 410],
]);

/** Creates the error of the class that matches the response. */
export function cloudError(message: string, details: ErrorDetails): CloudError {
  const { status, problem = '', serverId } = details;
  if (status === 429) return new TooManyRequestsError(message, details);
  if (status >= 500) return new UnavailableError(message, details);
  const needsProblem = STATUS_BY_PROBLEM.values().some((each) => each === status);
  // A controller deletes its record of a machine on 404, so a 404 must come from the cloud itself.
  if (needsProblem && STATUS_BY_PROBLEM.get(problem) !== status)
    return new UnexpectedAnswerError(message, details);
  // The cloud always names the server that has the name. The caller needs the id, because the server may be its own.
  if (status === 409 && serverId !== undefined) return new NameTakenError(message, { ...details, serverId });
  const Class = BY_STATUS[status] ?? UnexpectedAnswerError;
  return new Class(message, details);
}
