/** A cause in a `Status` response: what is wrong with one field. */
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
  /** Delay that the server requested (Retry-After), in milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** Thrown for an unsuccessful response of the API server. */
export class ApiError extends Error {
  /** Stable error code, such as `NOT_FOUND`. */
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

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return false;
  }
}

/** 400: the server does not understand the request. */
export class BadRequestError extends ApiError {
  override readonly code = 'BAD_REQUEST';
}

/** 401: the credentials are missing, wrong or expired. */
export class UnauthorizedError extends ApiError {
  override readonly code = 'UNAUTHORIZED';
}

/** 403: the user is authenticated but lacks the permission. */
export class ForbiddenError extends ApiError {
  override readonly code = 'FORBIDDEN';
}

/** 404: the object or the kind does not exist. */
export class NotFoundError extends ApiError {
  override readonly code = 'NOT_FOUND';
}

/** 409: the object has changed since it was read, or another field manager owns the field. */
export class ConflictError extends ApiError {
  override readonly code = 'CONFLICT';
}

/** 409 on create: an object of this name exists. */
export class AlreadyExistsError extends ApiError {
  override readonly code = 'ALREADY_EXISTS';
}

/** 410: the server no longer has the requested resource version or page. */
export class GoneError extends ApiError {
  override readonly code = 'GONE';
}

/** 422: the object violates its schema or a validation rule; `causes` lists the fields. */
export class InvalidError extends ApiError {
  override readonly code = 'INVALID';
}

/** 429: the server is overloaded; retry after `retryAfterMs`. The request was not executed. */
export class TooManyRequestsError extends ApiError {
  override readonly code = 'TOO_MANY_REQUESTS';
  override get retryable(): boolean {
    return true;
  }
}

/** 500 and above: the server failed. Whether the request was executed is unknown. */
export class UnavailableError extends ApiError {
  override readonly code = 'UNAVAILABLE';
  override get retryable(): boolean {
    return true;
  }
}

/**
 * Thrown when no response arrived: the connection was refused or reset, or the request timed out. Whether the request
 * was executed is unknown.
 */
export class ConnectionError extends Error {
  readonly code = 'CONNECTION';
  readonly retryable = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ConnectionError';
  }
}

/**
 * Error classes by reason. A response may contain any reason, even `constructor`. With that key, a plain object instead
 * of a Map would return an inherited property.
 */
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

/** Creates the error of the class that matches the response's reason or status. */
export function apiError(message: string, options: ApiErrorOptions): ApiError {
  const { status, reason = '' } = options;
  const Class =
    BY_REASON.get(reason) ?? BY_STATUS.get(status) ?? (status >= 500 ? UnavailableError : ApiError);
  return new Class(message, options);
}
