import { Mirror, type MirrorOptions, type Session } from '@vmwright/operator';
import { messageOf } from '@vmwright/runtime';
import type { FenceMode } from '../database/protocol.ts';
import { SimulatedDatabase } from '../database/session.ts';
import { observedManager } from '../scenario/observed-manager.ts';
import type { Program } from '../scenario/replicas.ts';

/** Back-off of sessions and rows. The maximum is lower than the default of five minutes, to keep runs short. */
const BACKOFF = { baseMs: 1_000, maxMs: 20_000 };

/** Time for which a state that may be transient must last before the mirror writes it to the row. */
export const SETTLING_MS = 3_000;
/** After a VM is re-created, the mirror waits this long for a new row. Then it uses the row of the earlier VM. */
export const CLAIM_MS = 10_000;

export interface MirrorProgramOptions
  extends Pick<MirrorOptions, 'mapping' | 'workers' | 'resyncMs' | 'statusEvents'> {
  readonly fence: FenceMode;
  /** Number of shards; undefined for leader election instead of sharding. */
  readonly shards: number | undefined;
  /** Called for each process, with its mirror and a function that returns the metrics of the process. */
  readonly onMirror: (identity: string, mirror: Mirror, metrics: () => string) => void;
  /** Called with the error that ends a process. */
  readonly onFailure: (message: string) => void;
  readonly onAcquired: (identity: string, session: Session) => void;
  readonly onRead: (identity: string, session: Session) => void;
}

/** Returns the program of the mirror, without its HTTP server. */
export function mirrorProgram({
  fence,
  shards,
  onMirror,
  onFailure,
  onAcquired,
  onRead,
  ...options
}: MirrorProgramOptions): Program {
  return async (world) => {
    const { identity } = world;
    const listeners = { onQueue: () => undefined, onLog: () => undefined };
    const { manager, log } = observedManager(world, listeners, { observesFirst: true, shards });
    const database = new SimulatedDatabase({
      world,
      identity,
      mode: fence,
      onAcquired: (session) => onAcquired(identity, session),
      onRead: (session) => onRead(identity, session),
    });
    const times = { settlingMs: SETTLING_MS, claimMs: CLAIM_MS, backoff: BACKOFF };
    const mirror = new Mirror(manager, { ...options, ...times, world, log, database, takesOver: true });
    onMirror(identity, mirror, () => manager.registry.text());
    await manager.run(world.stopping).catch((error: unknown) => {
      onFailure(messageOf(error));
      throw error;
    });
  };
}
