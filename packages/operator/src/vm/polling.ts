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
  /** Longest pause between two lists of the servers. */
  readonly everyMs: number;
}

/**
 * Returns the interval and the timeout of lists. Together they do not exceed `unknownAfterMs`, so that an outage is
 * detected within that time. If necessary, the interval is shorter than `refreshMs`.
 */
export function pollingOf({ refreshMs, timeoutMs, unknownAfterMs }: PollingOptions): Polling {
  const listTimeoutMs = Math.min(timeoutMs, unknownAfterMs / 2);
  return { listTimeoutMs, everyMs: Math.min(refreshMs, unknownAfterMs - listTimeoutMs) };
}
