/** Upper limit for a requested delay: a server that requests an hour may already work again after a minute. */
const MAX_MS = 60_000;

/**
 * Returns the delay in milliseconds that an error of the API server or of a backend requests (Retry-After), at most
 * `MAX_MS`. Returns undefined if the error requests none.
 */
export function retryAfterOf(error: unknown): number | undefined {
  const ms = error instanceof Error && 'retryAfterMs' in error ? error.retryAfterMs : undefined;
  return typeof ms === 'number' && Number.isFinite(ms) ? Math.min(ms, MAX_MS) : undefined;
}
