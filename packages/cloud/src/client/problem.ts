import { isRecord } from '../api/record.ts';
import { type CloudError, cloudError } from './errors.ts';

const LONGEST_TEXT = 300;
/** The cloud's own sentences are shorter; they become part of a status. */
const LONGEST_DETAIL = 2_000;
/** Whatever is asked for: a cloud that means an hour may be back in a minute. */
const LONGEST_WAIT_MS = 60_000;

/** An answer that is no success. */
export interface Refusal {
  readonly status: number;
  readonly body: string;
  readonly retryAfter: string | undefined;
}

/**
 * The error in an answer: a problem (RFC 9457) where the cloud itself has written it, and whatever it may be where a
 * proxy has.
 * @param now for a Retry-After that is a date
 * @param clean takes secrets out of what others have written
 */
export function errorFrom(
  what: string,
  { status, body, retryAfter }: Refusal,
  now: number,
  clean: (text: string) => string,
): CloudError {
  const problem = problemIn(body);
  // Cleaned after it is read, for in JSON a key may be written otherwise than it is; and before it is cut, for half of a
  // key is not found.
  const said = problem
    ? clean(problem.detail).slice(0, LONGEST_DETAIL)
    : clean(body.trim()).slice(0, LONGEST_TEXT) || `HTTP ${status}`;
  return cloudError(`${what}: ${said}`, {
    status,
    problem: problem?.code,
    detail: problem === undefined ? undefined : said,
    serverId: problem?.serverId,
    retryAfterMs: waitIn(retryAfter, now),
  });
}

interface Problem {
  readonly code: string;
  readonly detail: string;
  readonly serverId: string | undefined;
}

function problemIn(body: string): Problem | undefined {
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

/** `Retry-After`: seconds, or the moment itself; a minute at most. */
function waitIn(retryAfter: string | undefined, now: number): number | undefined {
  if (retryAfter === undefined) return undefined;
  const isSeconds = /^\d+(\.\d+)?$/.test(retryAfter);
  const ms = isSeconds ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_WAIT_MS);
}
