/** Upper limit for a requested delay: a server that requests an hour may already work again after a minute. */
const MAX_MS = 60_000;

/**
 * Returns the delay that the API server or a backend requested with an error (Retry-After), in milliseconds and at most
 * `MAX_MS`; undefined if it requested none.
 */
export function retryAfterOf(error: unknown): number | undefined {
  const ms = error instanceof Error && 'retryAfterMs' in error ? error.retryAfterMs : undefined;
  return typeof ms === 'number' && Number.isFinite(ms) ? Math.min(ms, MAX_MS) : undefined;
}
