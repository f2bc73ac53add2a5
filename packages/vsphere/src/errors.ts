/** What goes wrong with vCenter: a sentence for people, and a `code` for programs that stays the same. */
export abstract class VsphereError extends Error {
  abstract readonly code: string;
  /** Whether the same may succeed later, unchanged. */
  readonly retryable: boolean = false;
  /** Whether something was asked for that vCenter may, or may not, have carried out. */
  readonly effectUnknown: boolean = false;

  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

export interface Outcome {
  readonly effectUnknown: boolean;
}

/** No answer has come: refused, reset, timed out. */
export class ConnectionError extends VsphereError {
  readonly code = 'CONNECTION';
  override readonly retryable = true;
  override readonly effectUnknown: boolean;
  /** Whether it is because of the server's certificate: nothing was sent, and nothing will be until that is mended. */
  readonly untrusted: boolean;

  constructor(message: string, { effectUnknown, untrusted = false }: Outcome & { untrusted?: boolean }) {
    super(message);
    this.effectUnknown = effectUnknown && !untrusted;
    this.untrusted = untrusted;
  }
}

/** An answer that is not vCenter's: of a proxy, or of a vCenter that is about to start. */
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

/** An answer that cannot be read as what it should be. */
export class UnreadableAnswerError extends VsphereError {
  readonly code = 'UNREADABLE_ANSWER';
  override readonly effectUnknown: boolean;

  constructor(message: string, { effectUnknown }: Outcome = { effectUnknown: false }) {
    super(message);
    this.effectUnknown = effectUnknown;
  }
}

/** What was to be sent makes no sense, or not to a vCenter of this version. Nothing was sent. */
export class InvalidRequestError extends VsphereError {
  readonly code = 'INVALID_REQUEST';
}

/** The options make no sense together. */
export class OptionsError extends VsphereError {
  readonly code = 'INVALID_OPTIONS';
}

/** There is nothing of that name. */
export class NotFoundError extends VsphereError {
  readonly code = 'NOT_FOUND';
}

/** There are several of that name, or several of which none was named. */
export class AmbiguousError extends VsphereError {
  readonly code = 'AMBIGUOUS';
}

/** vCenter has forgotten the task, hence how it ended is to be seen in the inventory. */
export class TaskGoneError extends VsphereError {
  readonly code = 'TASK_GONE';
  override readonly effectUnknown = true;
}

/**
 * The address leads to another vCenter than at the first login. References of the one mean other objects, or nothing, on the
 * other, so nothing is sent until the address leads to the first one again.
 */
export class VcenterChangedError extends VsphereError {
  readonly code = 'VCENTER_CHANGED';
  /** `about.instanceUuid` at the first login. */
  readonly expected: string;
  /** The one that the server has now. */
  readonly actual: string | undefined;

  constructor(expected: string, actual: string | undefined) {
    super(
      `the address leads to another vCenter (${actual ?? 'without an identity'}) than before (${expected})`,
    );
    this.expected = expected;
    this.actual = actual;
  }
}

/** The client was stopped. */
export class StoppedError extends VsphereError {
  readonly code = 'STOPPED';
}
