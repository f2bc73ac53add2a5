import {
  CloudError,
  ConnectionError,
  InvalidRequestError,
  NameTakenError,
  TooManyRequestsError,
  UnauthorizedError,
  UnavailableError,
} from '@vmwright/cloud';
import { BackendUnavailableError } from '@vmwright/runtime';
import { SettingsError } from '../settings/values.ts';

/** Name of the private cloud in log lines and errors. */
export const BACKEND = 'cloud';

/** Reasons of Ready while the cloud cannot be asked. */
const OUTAGE_REASONS = [
  'CloudUnreachable',
  'CloudFailing',
  'CloudBusy',
  'CloudUnauthorized',
  'CloudUnexpectedAnswer',
] as const;

/** Why the operator cannot work with the cloud, for the status. The same text on every retry. */
export interface Trouble {
  readonly reason: (typeof OUTAGE_REASONS)[number] | 'CloudRefused';
  readonly message: string;
}

/** Whether this reason of Ready means that the cloud could not be asked, so that the state of the machine is unknown. */
export function isOutageReason(reason: string | undefined): boolean {
  return OUTAGE_REASONS.some((each) => each === reason);
}

/** Whether it ends by itself. The others need an administrator. */
export function isPassing({ reason }: Trouble): boolean {
  return reason === 'CloudUnreachable' || reason === 'CloudFailing' || reason === 'CloudBusy';
}

/**
 * What an error of a call to the cloud means for the status; undefined for errors that are not the cloud's.
 * The status is read by users of the cluster: it names no setting, file or address of the operator.
 */
export function troubleOf(error: unknown): Trouble | undefined {
  if (error instanceof BackendUnavailableError) return troubleOf(error.cause);
  if (error instanceof UnauthorizedError)
    return {
      reason: 'CloudUnauthorized',
      message: "The cloud rejects the operator's API key. An administrator of the operator has to replace it",
    };
  // The key is read for each request: its file may be replaced or removed at any time.
  if (error instanceof SettingsError)
    return {
      reason: 'CloudUnauthorized',
      message: 'The operator cannot read its API key. An administrator of the operator has to restore it',
    };
  if (error instanceof NameTakenError) return undefined; // its holder is gone by now: the next try finds the name free
  if (asksForTime(error))
    return {
      reason: 'CloudBusy',
      message: 'The cloud asked to back off (Retry-After); retrying automatically',
    };
  if (error instanceof InvalidRequestError)
    return { reason: 'CloudRefused', message: `The cloud rejected the request: ${error.detail}` };
  if (error instanceof UnavailableError)
    return {
      reason: 'CloudFailing',
      message: 'The cloud answers with a server error (HTTP 5xx); retrying automatically',
    };
  if (error instanceof ConnectionError)
    return { reason: 'CloudUnreachable', message: 'The cloud does not answer; retrying automatically' };
  if (error instanceof CloudError)
    return {
      reason: 'CloudUnexpectedAnswer',
      message: `Another program answers at the cloud's address (HTTP ${error.status}). An administrator of the operator has to check the address and proxies`,
    };
  return undefined;
}

/**
 * The error to fail a reconcile with: BackendUnavailableError where the cloud cannot be asked, so that the controller
 * does not log the outage once per object.
 */
export function asFailure(error: unknown): unknown {
  if (error instanceof BackendUnavailableError || !isOutageReason(troubleOf(error)?.reason)) return error;
  const message = error instanceof Error ? error.message : String(error);
  const failure = new BackendUnavailableError(BACKEND, message, { cause: error });
  const retryAfterMs = error instanceof Error && 'retryAfterMs' in error ? error.retryAfterMs : undefined;
  return Object.assign(failure, { retryAfterMs });
}

/** A 429, or a 503 that says when to come back: until then the client answers for the cloud, always by 429. */
function asksForTime(error: unknown): boolean {
  if (error instanceof TooManyRequestsError) return true;
  return error instanceof UnavailableError && (error.retryAfterMs ?? 0) > 0;
}
