import {
  CloudError,
  ConnectionError,
  InvalidRequestError,
  TooManyRequestsError,
  UnauthorizedError,
  UnavailableError,
  UnexpectedAnswerError,
} from '@vmwright/cloud';

/** What stands between us and the cloud, as a status tells it: in words that are the same each time. */
export interface Trouble {
  readonly reason: 'CloudUnreachable' | 'CloudUnauthorized' | 'CloudRefused';
  readonly message: string;
}

const UNREACHABLE: Trouble = {
  reason: 'CloudUnreachable',
  message: 'the cloud does not answer; it is asked again',
};

/** Undefined for what is not the cloud's: that is ours to mend, and in the log. */
export function troubleOf(error: unknown): Trouble | undefined {
  if (error instanceof UnauthorizedError)
    return {
      reason: 'CloudUnauthorized',
      message: 'the cloud does not accept our API key; mend CLOUD_API_KEY',
    };
  if (error instanceof InvalidRequestError)
    return { reason: 'CloudRefused', message: `the cloud refuses: ${error.detail}` };
  if (
    error instanceof ConnectionError ||
    error instanceof UnavailableError ||
    error instanceof TooManyRequestsError ||
    error instanceof UnexpectedAnswerError // a proxy in its place, say
  )
    return UNREACHABLE;
  return error instanceof CloudError ? UNREACHABLE : undefined;
}
