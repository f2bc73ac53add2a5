import { type ApiError, apiError, type Cause } from './errors.ts';
import { isRecord } from './record.ts';

/**
 * Creates the error for an unsuccessful response. The body is a `Status` object if it comes from the API server, and
 * arbitrary text if it comes from a proxy.
 */
export function errorFrom(what: string, status: number, body: string, retryAfter?: string): ApiError {
  const parsed = parse(body);
  const code = typeof parsed?.code === 'number' ? parsed.code : status;
  const message =
    typeof parsed?.message === 'string' ? parsed.message : body.trim().slice(0, 300) || `HTTP ${status}`;
  const details = isRecord(parsed?.details) ? parsed.details : {};
  return apiError(`${what}: ${message}`, {
    status: code,
    reason: typeof parsed?.reason === 'string' ? parsed.reason : undefined,
    causes: Array.isArray(details.causes) ? details.causes.filter(isCause) : [],
    retryAfterMs: toMilliseconds(retryAfter) ?? toMilliseconds(details.retryAfterSeconds),
  });
}

interface Status {
  readonly message?: unknown;
  readonly reason?: unknown;
  readonly code?: unknown;
  readonly details?: unknown;
}

function parse(body: string): Status | undefined {
  if (!body.startsWith('{')) return undefined;
  try {
    const parsed: unknown = JSON.parse(body);
    return isRecord(parsed) && parsed.kind === 'Status' ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isCause(value: unknown): value is Cause {
  return isRecord(value);
}

function toMilliseconds(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number.parseFloat(value) : value;
  return typeof number === 'number' && number >= 0 ? number * 1000 : undefined;
}
