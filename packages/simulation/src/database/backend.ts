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
  /** Function that ends the running statement with a commit or a rollback; undefined while the session is idle. */
  statement: ((commits: boolean) => void) | undefined;
  /** Number of statements that have arrived and wait for execution. */
  queued = 0;
  /** Whether the session ends after the statements that have arrived, because its client is gone. */
  isAbandoned = false;

  constructor(id: number, identity: string, mode: FenceMode) {
    this.id = id;
    this.identity = identity;
    this.mode = mode;
  }
}
