import type { Server } from '@vmwright/cloud';

/** A server of the modelled cloud. Never changed in place. */
export interface CloudServer extends Server {
  /** Its place in lists. */
  readonly seq: number;
  /** With which it was created. */
  readonly key: string | undefined;
}

/** Who has brought a change about: a request, the machine by itself, or somebody past the API. */
export type Cause = 'request' | 'itself' | 'somebody';

/** A moment at which a server changed; `before` is missing when it has come, `after` when it is gone. */
export interface CloudChange {
  readonly atMs: number;
  readonly before: CloudServer | undefined;
  readonly after: CloudServer | undefined;
  readonly cause: Cause;
}
