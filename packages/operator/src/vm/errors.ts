import {
  CloudError,
  ConnectionError,
  InvalidRequestError,
  NameTakenError,
  NotFoundError,
  TooManyRequestsError,
  UnauthorizedError,
  UnavailableError,
} from '@vmwright/cloud';
import { BackendUnavailableError } from '@vmwright/runtime';
import { SettingsError } from '../settings/values.ts';
import type { VmReason } from './conditions.ts';

/** Name of the private cloud in log lines and errors. */
export const BACKEND = 'cloud';

/**
 * What conditions report about a failed cloud request. The message is the same on every retry, so that a retry does not
 * write the status. It names no setting, file or address of the operator, because users of the cluster read it.
 */
export interface ConditionError {
  readonly reason: Extract<VmReason, `Cloud${string}`>;
  readonly message: string;
  /**
   * Whether the cloud did not serve the request. The state of the machine is then unknown. False if the cloud rejected
   * the request as invalid.
   */
  readonly isOutage: boolean;
  /** Whether retries can succeed without an administrator. */
  readonly isTransient: boolean;
}

const TRANSIENT = { isOutage: true, isTransient: true } as const;
const NEEDS_ADMINISTRATOR = { isOutage: true, isTransient: false } as const;
const REJECTED = { isOutage: false, isTransient: false } as const;

/**
 * Returns what conditions report about an error of a cloud request. Undefined if a name is taken, or if the error does
 * not come from the cloud.
 */
export function toCondition(error: unknown): ConditionError | undefined {
  if (error instanceof BackendUnavailableError) return toCondition(error.cause);
  if (error instanceof UnauthorizedError)
    return {
      reason: 'CloudUnauthorized',
      message: "The cloud rejects the operator's API key. An administrator of the operator has to replace it",
      ...NEEDS_ADMINISTRATOR,
    };
  // Each request reads the API key from a file. The file may be removed or replaced at any time, so any request may
  // fail with this error.
  if (error instanceof SettingsError)
    return {
      reason: 'CloudUnauthorized',
      message: 'The operator cannot read its API key. An administrator of the operator has to restore it',
      ...NEEDS_ADMINISTRATOR,
    };
  // Conditions do not report this error. `observeAnswer` throws it only if the server that had the name does not exist
  // any more, so a retry can succeed.
  if (error instanceof NameTakenError) return undefined;
  if (asksToBackOff(error))
    return {
      reason: 'CloudBusy',
      message: 'The cloud asked to back off (Retry-After); retrying automatically',
      ...TRANSIENT,
    };
  if (error instanceof InvalidRequestError)
    return {
      reason: 'CloudRefused',
      message: `The cloud rejected the request: ${error.detail}`,
      ...REJECTED,
    };
  if (error instanceof UnavailableError)
    return {
      reason: 'CloudFailing',
      message: 'The cloud answers with a server error (HTTP 5xx); retrying automatically',
      ...TRANSIENT,
    };
  if (error instanceof ConnectionError)
    return {
      reason: 'CloudUnreachable',
      message: 'The cloud does not answer; retrying automatically',
      ...TRANSIENT,
    };
  if (error instanceof CloudError)
    return {
      reason: 'CloudUnexpectedAnswer',
      message: `Another program answers at the cloud's address (HTTP ${error.status}). An administrator of the operator has to check the address and proxies`,
      ...NEEDS_ADMINISTRATOR,
    };
  return undefined;
}

/**
 * Returns the error that the reconcile throws. During an outage of the cloud, this is a BackendUnavailableError, which
 * the controller does not log for each object.
 */
export function toReconcileError(error: unknown): unknown {
  if (error instanceof BackendUnavailableError || !toCondition(error)?.isOutage) return error;
  const message = error instanceof Error ? error.message : String(error);
  const unavailable = new BackendUnavailableError(BACKEND, message, { cause: error });
  const retryAfterMs = error instanceof Error && 'retryAfterMs' in error ? error.retryAfterMs : undefined;
  return Object.assign(unavailable, { retryAfterMs });
}

/** Resolves to undefined if the cloud has no such server. */
export async function ignoreNotFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/** Whether the cloud accepts a change of a server. False if the cloud does not have the server any more. */
export async function isAccepted(answer: Promise<unknown>): Promise<boolean> {
  return (await ignoreNotFound(answer.then(() => true))) ?? false;
}

/**
 * Whether the error is a 429, or a 503 with Retry-After. Until the Retry-After time has passed, the client itself
 * rejects further requests with a 429.
 */
function asksToBackOff(error: unknown): boolean {
  if (error instanceof TooManyRequestsError) return true;
  return error instanceof UnavailableError && (error.retryAfterMs ?? 0) > 0;
}
