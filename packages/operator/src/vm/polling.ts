/** Polling interval while a machine is being created or deleted. */
export const CHANGING_MS = 2_000;

export interface PollingOptions {
  /** Wanted interval between two lists of the servers. */
  readonly refreshMs: number;
  /** Timeout of one request to the cloud. */
  readonly timeoutMs: number;
  /** Time without an answer from the cloud after which Ready is Unknown. */
  readonly unknownAfterMs: number;
}

export interface Polling {
  /** Timeout of each page of a list. */
  readonly listTimeoutMs: number;
  /** Longest pause between two lists. */
  readonly everyMs: number;
}

/**
 * Returns a list interval and timeout that detect an outage within `unknownAfterMs`: even a list that starts after the
 * longest pause and hangs times out by then. Shortens `refreshMs` if it is too long for that.
 */
export function pollingOf({ refreshMs, timeoutMs, unknownAfterMs }: PollingOptions): Polling {
  const listTimeoutMs = Math.min(timeoutMs, unknownAfterMs / 2);
  return { listTimeoutMs, everyMs: Math.min(refreshMs, unknownAfterMs - listTimeoutMs) };
}
