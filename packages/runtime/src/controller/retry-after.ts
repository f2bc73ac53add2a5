/** Upper limit for a requested delay: a server that asks for an hour may be back in a minute. */
const MAX_MS = 60_000;

/**
 * Returns the delay in milliseconds that the API server or a backend requested with an error (Retry-After), if any; at
 * most `MAX_MS`.
 */
export function retryAfterOf(error: unknown): number | undefined {
  const ms = error instanceof Error && 'retryAfterMs' in error ? error.retryAfterMs : undefined;
  return typeof ms === 'number' && Number.isFinite(ms) ? Math.min(ms, MAX_MS) : undefined;
}
