export interface PollingOptions {
  /** How often the cloud is to be asked how its machines are. */
  readonly refreshMs: number;
  /** Time for one request to the cloud. */
  readonly timeoutMs: number;
  /** Time without an answer from the cloud after which Ready is Unknown. */
  readonly unknownAfterMs: number;
}

export interface Polling {
  /** Time for each page of a list. */
  readonly listTimeoutMs: number;
  /** Longest pause between two lists. */
  readonly everyMs: number;
}

/**
 * How the servers are listed so that an outage is noticed within `unknownAfterMs`: a list that begins after the longest
 * pause and hangs ends before that. A longer `refreshMs` is cut.
 */
export function pollingOf({ refreshMs, timeoutMs, unknownAfterMs }: PollingOptions): Polling {
  const listTimeoutMs = Math.min(timeoutMs, unknownAfterMs / 2);
  return { listTimeoutMs, everyMs: Math.min(refreshMs, unknownAfterMs - listTimeoutMs) };
}
