import type { Fence, Logger, World } from '@vmwright/core';
import type { Caches } from '../cache/caches.ts';
import type { Client } from '../client/client.ts';
import type { Write } from '../client/options.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { ShardOwnership } from '../sharding/options.ts';
import type { WorkContext } from './context.ts';

/** What whoever works takes from the program it is part of. */
export interface WorkEnvironment {
  readonly world: World;
  readonly client: Client;
  readonly caches: Caches;
  readonly log: Logger;
  /** The fence of the period in which this replica acts on the key: closed if it may not, and once that period has ended. */
  readonly fence: (key: string) => Fence;
  /** The version from which on this replica acts; what is older may come in late. @default 0 */
  readonly sinceVersion?: () => number;
  /** What is this replica's, where replicas divide the work. @default all */
  readonly share?: ShardOwnership | undefined;
}

/** One piece of work. */
interface WorkItem {
  /** By which it is this replica's or another's. */
  readonly key: string;
  readonly signal: AbortSignal;
  /** Made when first asked for: most work has nothing to say. */
  readonly log: () => Logger;
  /** Told of each write. */
  readonly onWrite?: <O extends KubeObject>(write: Write<O>) => void;
}

/** @param declared the kinds whose caches it may read */
export function workContext(
  { world, client, caches, fence: fenceOf }: WorkEnvironment,
  declared: ReadonlySet<string>,
  { key, signal, log, onWrite }: WorkItem,
): WorkContext {
  // Taken once: work that was begun in one term must not act in the next.
  const fence = fenceOf(key);
  const assertLeader = () => fence.assertOpen();
  return {
    signal,
    fence,
    client: client.scoped({
      // Not `signal`: after a stop of the program, what was done outside can still be written down.
      signal: fence.signal,
      assertLeader,
      onWrite: (write) => {
        onWrite?.(write);
        caches.onWrite(write);
      },
    }),
    assertLeader,
    get log() {
      return log();
    },
    now: () => world.now(),
    cache: (kind) => {
      if (declared.has(resourceOf(kind))) return caches.get(kind);
      throw new Error(
        `${resourceOf(kind)} is read from its cache without being declared; add it to \`reads\``,
      );
    },
  };
}

/** Has the kinds cached, so that they are complete before anything begins. */
export function declareCaches(caches: Caches, kinds: Iterable<Kind>): ReadonlySet<string> {
  const declared = new Set<string>();
  for (const kind of kinds) {
    caches.get(kind);
    declared.add(resourceOf(kind));
  }
  return declared;
}
