/** Whatever is asked for: one that means an hour may be back in a minute. */
const MAX_MS = 60_000;

/** How long a server has asked to be left alone: the API server, or one outside whose client says so as well. */
export function retryAfterOf(error: unknown): number | undefined {
  const ms = error instanceof Error && 'retryAfterMs' in error ? error.retryAfterMs : undefined;
  return typeof ms === 'number' && Number.isFinite(ms) ? Math.min(ms, MAX_MS) : undefined;
}
