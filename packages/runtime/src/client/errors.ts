/** A reason that the API server gives for one field. */
export interface Cause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

export interface ApiErrorOptions {
  /** HTTP status. */
  readonly status: number;
  readonly reason?: string | undefined;
  readonly causes?: readonly Cause[];
  /** How long the server asks to wait. */
  readonly retryAfterMs?: number | undefined;
}

/** The API server has answered, and the answer is no. */
export class ApiError extends Error {
  /** Stable, for programs: `NOT_FOUND`. */
  readonly code: string = 'API_ERROR';
  readonly status: number;
  readonly reason: string | undefined;
  readonly causes: readonly Cause[];
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { status, reason, causes = [], retryAfterMs }: ApiErrorOptions) {
    super(message);
    this.name = new.target.name;
    this.status = status;
    this.reason = reason;
    this.causes = causes;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether the same request may succeed later, unchanged. */
  get retryable(): boolean {
    return false;
  }
}

/** 400: the request makes no sense to the server. */
export class BadRequestError extends ApiError {
  override readonly code = 'BAD_REQUEST';
}

/** 401: the credentials are missing, wrong or expired. */
export class UnauthorizedError extends ApiError {
  override readonly code = 'UNAUTHORIZED';
}

/** 403: known, and not allowed to. */
export class ForbiddenError extends ApiError {
  override readonly code = 'FORBIDDEN';
}

/** 404: no such object, or no such kind. */
export class NotFoundError extends ApiError {
  override readonly code = 'NOT_FOUND';
}

/** 409: the object has changed meanwhile, or another manager owns the field. */
export class ConflictError extends ApiError {
  override readonly code = 'CONFLICT';
}

/** 409 on create: there is an object of this name. */
export class AlreadyExistsError extends ApiError {
  override readonly code = 'ALREADY_EXISTS';
}

/** 410: the resource version (or page) asked for is history. */
export class GoneError extends ApiError {
  override readonly code = 'GONE';
}

/** 422: the object breaks its schema or a rule; `causes` names the fields. */
export class InvalidError extends ApiError {
  override readonly code = 'INVALID';
}

/** 429: not now; `retryAfterMs` says when. The request was not carried out. */
export class TooManyRequestsError extends ApiError {
  override readonly code = 'TOO_MANY_REQUESTS';
  override get retryable(): boolean {
    return true;
  }
}

/** 500 and above: the server is in trouble. Whether it has carried out the request is unknown. */
export class UnavailableError extends ApiError {
  override readonly code = 'UNAVAILABLE';
  override get retryable(): boolean {
    return true;
  }
}

/** No answer has come: refused, reset, timed out. Whether the server has carried out the request is unknown. */
export class ConnectionError extends Error {
  readonly code = 'CONNECTION';
  readonly retryable = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ConnectionError';
  }
}

/** Maps and not objects: the answer chooses the reason and the code, and an object also has `constructor`. */
const BY_REASON: ReadonlyMap<string, typeof ApiError> = new Map<string, typeof ApiError>([
  ['AlreadyExists', AlreadyExistsError],
  ['Expired', GoneError],
]);

const BY_STATUS: ReadonlyMap<number, typeof ApiError> = new Map<number, typeof ApiError>([
  [400, BadRequestError],
  [401, UnauthorizedError],
  [403, ForbiddenError],
  [404, NotFoundError],
  [409, ConflictError],
  [410, GoneError],
  [422, InvalidError],
  [429, TooManyRequestsError],
]);

/** The error of the fitting class for what the server has answered. */
export function apiError(message: string, options: ApiErrorOptions): ApiError {
  const { status, reason = '' } = options;
  const Class =
    BY_REASON.get(reason) ?? BY_STATUS.get(status) ?? (status >= 500 ? UnavailableError : ApiError);
  return new Class(message, options);
}
