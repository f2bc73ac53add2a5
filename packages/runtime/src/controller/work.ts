import type { Caches } from '../cache/caches.ts';
import type { Client } from '../client/client.ts';
import type { Write } from '../client/options.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { Logger } from '../log/logger.ts';
import type { Share } from '../sharding/options.ts';
import type { World } from '../world/world.ts';
import type { WorkContext } from './context.ts';

/** What whoever works takes from the program it is part of. */
export interface WorkEnvironment {
  readonly world: World;
  readonly client: Client;
  readonly caches: Caches;
  readonly log: Logger;
  /** Throws when this replica may not act (any more) on what has this key. */
  readonly allow: (key: string) => void;
  /** The version from which on this replica acts; what is older may come in late. @default 0 */
  readonly sinceVersion?: () => number;
  /** What is this replica's, where replicas divide the work. @default all */
  readonly share?: Share | undefined;
}

/** One piece of work. */
interface Piece {
  /** By which it is this replica's or another's. */
  readonly key: string;
  readonly signal: AbortSignal;
  /** Aborts when another may act here by now, which `signal` does not tell any more once the program stops. */
  readonly lost: AbortSignal;
  /** Made when first asked for: most work has nothing to say. */
  readonly log: () => Logger;
  /** Told of each write. */
  readonly written?: <O extends KubeObject>(write: Write<O>) => void;
}

/** @param declared the kinds whose caches it may read */
export function workContext(
  { world, client, caches, allow }: WorkEnvironment,
  declared: ReadonlySet<string>,
  { key, signal, lost, log, written }: Piece,
): WorkContext {
  return {
    signal,
    client: client.scoped({
      signal: lost,
      allow: () => allow(key),
      written: (write) => {
        written?.(write);
        caches.written(write);
      },
    }),
    assertMayAct: () => allow(key),
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
export function declare(caches: Caches, kinds: Iterable<Kind>): ReadonlySet<string> {
  const declared = new Set<string>();
  for (const kind of kinds) {
    caches.get(kind);
    declared.add(resourceOf(kind));
  }
  return declared;
}
