import {
  CloudError,
  ConnectionError,
  InvalidRequestError,
  NameTakenError,
  TooManyRequestsError,
  UnauthorizedError,
  UnavailableError,
  UnexpectedAnswerError,
} from '@vmwright/cloud';
import { SettingsError } from '../settings/values.ts';

/** What stands between us and the cloud, as a status tells it: in words that are the same each time. */
export interface Trouble {
  readonly reason: 'CloudUnreachable' | 'CloudBusy' | 'CloudUnauthorized' | 'CloudRefused';
  readonly message: string;
}

const UNREACHABLE: Trouble = {
  reason: 'CloudUnreachable',
  message: 'the cloud does not answer; it is asked again',
};

const BUSY: Trouble = { reason: 'CloudBusy', message: 'the cloud asks for time; it is asked again' };

/** Undefined for what is not the cloud's: that is ours to mend, and in the log. */
export function troubleOf(error: unknown): Trouble | undefined {
  if (error instanceof UnauthorizedError)
    return {
      reason: 'CloudUnauthorized',
      message: 'the cloud does not accept our API key; mend CLOUD_API_KEY, or the file of CLOUD_API_KEY_FILE',
    };
  // It is read for each request, and may be replaced or taken away at any time.
  if (error instanceof SettingsError)
    return {
      reason: 'CloudUnauthorized',
      message: 'our API key cannot be read; mend CLOUD_API_KEY_FILE',
    };
  if (error instanceof NameTakenError) return undefined; // and free again by now: the next try finds it so
  if (asksForTime(error)) return BUSY;
  if (error instanceof InvalidRequestError)
    return { reason: 'CloudRefused', message: `the cloud refuses: ${error.detail}` };
  if (
    error instanceof ConnectionError ||
    error instanceof UnavailableError ||
    error instanceof UnexpectedAnswerError // a proxy in its place, say
  )
    return UNREACHABLE;
  return error instanceof CloudError ? UNREACHABLE : undefined;
}

/** A 429, or a 503 that says when to come back: until then the client answers for the cloud, always by 429. */
export function asksForTime(error: unknown): boolean {
  if (error instanceof TooManyRequestsError) return true;
  return error instanceof UnavailableError && (error.retryAfterMs ?? 0) > 0;
}
