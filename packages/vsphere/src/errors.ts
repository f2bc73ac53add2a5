/** Base class of all errors of this package. The message is for people; `code` is stable and meant for programs. */
export abstract class VsphereError extends Error {
  abstract readonly code: string;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean = false;
  /** Whether vCenter may have carried out a change although the request failed. */
  readonly effectUnknown: boolean = false;

  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

export interface Outcome {
  readonly effectUnknown: boolean;
}

/** Thrown when no response arrived: the connection was refused, reset or timed out. */
export class ConnectionError extends VsphereError {
  readonly code = 'CONNECTION';
  override readonly retryable = true;
  override readonly effectUnknown: boolean;
  /** Whether the client rejected the server's certificate. If so, the request was not sent. */
  readonly untrusted: boolean;

  constructor(message: string, { effectUnknown, untrusted = false }: Outcome & { untrusted?: boolean }) {
    super(message);
    this.effectUnknown = effectUnknown && !untrusted;
    this.untrusted = untrusted;
  }
}

/** Thrown for a response that comes from a proxy or from a starting vCenter instead of vCenter's API. */
export class UnavailableError extends VsphereError {
  readonly code = 'UNAVAILABLE';
  override readonly retryable = true;
  override readonly effectUnknown: boolean;
  /** HTTP status. */
  readonly status: number;

  constructor(message: string, { effectUnknown, status }: Outcome & { readonly status: number }) {
    super(message);
    this.effectUnknown = effectUnknown;
    this.status = status;
  }
}

/** Thrown for a response that is not valid SOAP, or not of the expected type. */
export class InvalidResponseError extends VsphereError {
  readonly code = 'INVALID_RESPONSE';
  override readonly effectUnknown: boolean;

  constructor(message: string, { effectUnknown }: Outcome = { effectUnknown: false }) {
    super(message);
    this.effectUnknown = effectUnknown;
  }
}

/** Thrown for arguments that are invalid, or unknown to the server's API version. Nothing was sent. */
export class InvalidRequestError extends VsphereError {
  readonly code = 'INVALID_REQUEST';
}

/** Thrown for invalid client options. */
export class OptionsError extends VsphereError {
  readonly code = 'INVALID_OPTIONS';
}

/** Thrown when no object matches a name or path. */
export class NotFoundError extends VsphereError {
  readonly code = 'NOT_FOUND';
}

/** Thrown when several objects match a name, or when no name is given and several objects exist. */
export class AmbiguousError extends VsphereError {
  readonly code = 'AMBIGUOUS';
}

/**
 * Thrown when vCenter does not know a task any more. The caller has to check in vCenter whether the task took effect.
 */
export class TaskGoneError extends VsphereError {
  readonly code = 'TASK_GONE';
  override readonly effectUnknown = true;
}

/**
 * Thrown when the address leads to another vCenter than at the first login. In the other vCenter, the same references
 * name other objects. Therefore the client does not log in until the address leads to the first vCenter again.
 */
export class VcenterChangedError extends VsphereError {
  readonly code = 'VCENTER_CHANGED';
  /** `about.instanceUuid` at the first login. */
  readonly expected: string;
  /** `about.instanceUuid` of the server that responded. */
  readonly actual: string | undefined;

  constructor(expected: string, actual: string | undefined) {
    super(
      `the address leads to another vCenter (instance UUID ${actual ?? 'missing'}) than at the first login (${expected})`,
    );
    this.expected = expected;
    this.actual = actual;
  }
}

/** Thrown after the client was stopped. */
export class StoppedError extends VsphereError {
  readonly code = 'STOPPED';
}
