import type { ServerStream } from '../world/server.ts';
import type { FenceMode } from './protocol.ts';

/** PostgreSQL server process (backend) of one session. */
export class Backend {
  readonly id: number;
  /** Name and incarnation of the replica that opened the session. */
  readonly identity: string;
  readonly mode: FenceMode;
  /** Connection to the client. */
  stream: ServerStream | undefined;
  /** Commits (if `commits`) or rolls back the running statement. Undefined while no statement runs. */
  statement: ((commits: boolean) => void) | undefined;
  /** Number of statements that have arrived and wait for execution. */
  queued = 0;
  /** Whether the client is gone. The session then ends after the statements that have already arrived. */
  isAbandoned = false;

  constructor(id: number, identity: string, mode: FenceMode) {
    this.id = id;
    this.identity = identity;
    this.mode = mode;
  }
}
