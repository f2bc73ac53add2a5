import { isRecord } from '../api/record.ts';
import { type CloudError, cloudError } from './errors.ts';

/** Maximum number of characters that an error quotes from a response that is not a problem document. */
const MAX_BODY_CHARS = 300;
/** Maximum number of characters of a problem's detail, which may become part of a status. */
const MAX_DETAIL_CHARS = 2_000;
/** Maximum delay in ms. A longer Retry-After is reduced: a cloud that asks for an hour may recover in a minute. */
const MAX_RETRY_AFTER_MS = 60_000;

/** A response with a status other than 2xx. */
export interface ErrorResponse {
  readonly status: number;
  readonly body: string;
  readonly retryAfter: string | undefined;
}

/**
 * Converts an error response to a CloudError. The cloud itself sends problem documents (RFC 9457). A proxy may send any
 * body.
 * @param what the request, for the error message
 * @param now current time in ms, to interpret a Retry-After that is a date
 * @param redact removes secrets from text that the server wrote
 */
export function errorFrom(
  what: string,
  { status, body, retryAfter }: ErrorResponse,
  now: number,
  redact: (text: string) => string,
): CloudError {
  const problem = parseProblem(body);
  // The text is redacted after decoding, because JSON may escape characters of the key. It is redacted before
  // truncating, because half a key would not be recognized.
  const detail = problem
    ? redact(problem.detail).slice(0, MAX_DETAIL_CHARS)
    : redact(body.trim()).slice(0, MAX_BODY_CHARS) || `HTTP ${status}`;
  return cloudError(`${what}: ${detail}`, {
    status,
    problem: problem?.code,
    detail: problem === undefined ? undefined : detail,
    serverId: problem?.serverId,
    retryAfterMs: parseRetryAfter(retryAfter, now),
  });
}

interface Problem {
  readonly code: string;
  readonly detail: string;
  readonly serverId: string | undefined;
}

function parseProblem(body: string): Problem | undefined {
  if (!body.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(body);
    if (!isRecord(value)) return undefined;
    const { code, detail, serverId } = value;
    if (typeof code !== 'string' || typeof detail !== 'string') return undefined;
    return { code, detail, serverId: typeof serverId === 'string' ? serverId : undefined };
  } catch {
    return undefined;
  }
}

/** Parses a Retry-After header (seconds or a date) to milliseconds, at most MAX_RETRY_AFTER_MS. */
function parseRetryAfter(retryAfter: string | undefined, now: number): number | undefined {
  if (retryAfter === undefined) return undefined;
  const isSeconds = /^\d+(\.\d+)?$/.test(retryAfter);
  const ms = isSeconds ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
