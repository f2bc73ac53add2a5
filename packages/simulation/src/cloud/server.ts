import type { Server } from '@vmwright/cloud';

/** A server of the modelled cloud. Immutable. */
export interface CloudServer extends Server {
  /** Position in lists. */
  readonly seq: number;
  /** Idempotency key of the create request, if it had one. */
  readonly key: string | undefined;
}

/**
 * Cause of a change:
 * - `request`: an API request.
 * - `itself`: the server, for example when it has booted.
 * - `somebody`: a third party that bypasses the API.
 */
export type Cause = 'request' | 'itself' | 'somebody';

/** A change of a server. `before` is undefined for a created server, `after` for a deleted one. */
export interface CloudChange {
  readonly atMs: number;
  readonly before: CloudServer | undefined;
  readonly after: CloudServer | undefined;
  readonly cause: Cause;
}
