export interface AnswerDetails {
  /** HTTP status. */
  readonly status: number;
  /** The server's own code for it: `NAME_TAKEN`; undefined where something else has answered. */
  readonly problem?: string | undefined;
  /** The server's own sentence. */
  readonly detail?: string | undefined;
  /** Of the server it is about. */
  readonly serverId?: string | undefined;
  /** How long the cloud asks to wait. */
  readonly retryAfterMs?: number | undefined;
}

/** The cloud has answered, and the answer is no. */
export class CloudError extends Error {
  /** Stable, for programs. */
  readonly code: string = 'CLOUD';
  readonly status: number;
  readonly problem: string | undefined;
  /** What the cloud says, in its own words: for people, who need not know which request it was. */
  readonly detail: string;

  constructor(message: string, { status, problem, detail = message }: AnswerDetails) {
    super(message);
    this.name = new.target.name;
    this.status = status;
    this.problem = problem;
    this.detail = detail;
  }

  /** Whether the same request may succeed later, unchanged. */
  get retryable(): boolean {
    return false;
  }
}

/** The answer names a server. */
export class ServerError extends CloudError {
  readonly serverId: string | undefined;

  constructor(message: string, details: AnswerDetails) {
    super(message, details);
    this.serverId = details.serverId;
  }
}

/** The same request may succeed later; the answer may say when. */
export class LaterError extends CloudError {
  readonly retryAfterMs: number | undefined;

  constructor(message: string, details: AnswerDetails) {
    super(message, details);
    this.retryAfterMs = details.retryAfterMs;
  }

  override get retryable(): boolean {
    return true;
  }
}

/** 403: nobody may call a server that. */
export class ProhibitedNameError extends CloudError {
  override readonly code = 'PROHIBITED_NAME';
}

/** 409: another server has the name: `serverId`. */
export class NameTakenError extends ServerError {
  override readonly code = 'NAME_TAKEN';
}

/** 400, 422 and their like: the request itself is wrong, and stays so. `problem` says more. */
export class InvalidRequestError extends CloudError {
  override readonly code = 'INVALID_REQUEST';
}

/** 404: there is no such server (any more). */
export class NotFoundError extends CloudError {
  override readonly code = 'NOT_FOUND';
}

/** 410: the server that was created with this key (`serverId`) has been deleted; the key brings no other. */
export class GoneError extends ServerError {
  override readonly code = 'GONE';
}

/** 401: the API key is wrong. */
export class UnauthorizedError extends CloudError {
  override readonly code = 'UNAUTHORIZED';
}

/** 429: not now. The request was not carried out. */
export class TooManyRequestsError extends LaterError {
  override readonly code = 'TOO_MANY_REQUESTS';
}

/** 500 and above: the cloud is in trouble. Whether it has carried out the request is unknown. */
export class UnavailableError extends LaterError {
  override readonly code = 'UNAVAILABLE';
}

/** Something has answered that is not the cloud's API: a proxy's log-in page, another program on the port. */
export class UnexpectedAnswerError extends CloudError {
  override readonly code = 'UNEXPECTED_ANSWER';
}

/** No answer has come: refused, reset, timed out. Whether the cloud has carried out the request is unknown. */
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
  409: NameTakenError,
  410: GoneError,
  413: InvalidRequestError,
  415: InvalidRequestError,
  422: InvalidRequestError,
};

/** What only the cloud itself means by a status: a proxy in between has 403s and 404s of its own. */
const BY_PROBLEM: ReadonlyMap<string, number> = new Map([
  ['PROHIBITED_NAME', 403],
  ['NOT_FOUND', 404],
  ['NAME_TAKEN', 409],
  ['SERVER_GONE', 410],
]);

/** The error of the fitting class for what was answered. */
export function cloudError(message: string, details: AnswerDetails): CloudError {
  const { status, problem = '' } = details;
  if (status === 429) return new TooManyRequestsError(message, details);
  if (status >= 500) return new UnavailableError(message, details);
  const meansOne = BY_PROBLEM.values().some((each) => each === status);
  // A controller deletes its record of a machine on 404: it must be the cloud that says so.
  if (meansOne && BY_PROBLEM.get(problem) !== status) return new UnexpectedAnswerError(message, details);
  const Class = BY_STATUS[status] ?? UnexpectedAnswerError;
  return new Class(message, details);
}
