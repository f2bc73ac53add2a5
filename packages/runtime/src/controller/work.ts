import type { Fence, Logger, Tracer, World } from '@vmwright/core';
import type { Caches } from '../cache/caches.ts';
import type { Client } from '../client/client.ts';
import type { Write } from '../client/options.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { ShardOwnership } from '../sharding/options.ts';
import type { WorkContext } from './context.ts';

/** Dependencies of controllers and jobs; the manager provides them. */
export interface WorkEnvironment {
  readonly world: World;
  readonly client: Client;
  readonly caches: Caches;
  readonly log: Logger;
  /** Records reconciles and jobs as spans. @default no tracing */
  readonly tracer?: Tracer | undefined;
  /**
   * Returns the fence that is checked before each write: the fence of the current leadership term or, with sharding, of
   * this replica's ownership of the key. It is closed if this replica does not lead or does not own the key.
   */
  readonly fence: (key: string) => Fence;
  /**
   * Resource version at which the current leadership term began. A change with a lower version may be a write of the
   * previous leader, delivered after the term began.
   * @default 0
   */
  readonly sinceVersion?: () => number;
  /** Whether it is known that no other replica has led since the caches first listed their objects. @default false */
  readonly hasFreshCaches?: () => boolean;
  /** Keys that this replica owns, if the work is sharded. @default all */
  readonly share?: ShardOwnership | undefined;
}

/** A reconcile or a job's run. */
interface WorkItem {
  /** Key by which sharding decides which replica does the work. */
  readonly key: string;
  readonly signal: AbortSignal;
  /** Creates the logger on first use. */
  readonly log: () => Logger;
  /** Called after each write. */
  readonly onWrite?: <O extends KubeObject>(write: Write<O>) => void;
}

/**
 * Creates the context of a reconcile or a job's run.
 * @param declared resources that the work may read from the caches
 */
export function workContext(
  { world, client, caches, fence: fenceOf }: WorkEnvironment,
  declared: ReadonlySet<string>,
  { key, signal, log, onWrite }: WorkItem,
): WorkContext {
  // The fence is read once, because work that began in one leadership term must not write in the next.
  const fence = fenceOf(key);
  const assertLeader = () => fence.assertOpen();
  const rest: Omit<WorkContext, 'log'> = {
    signal,
    fence,
    client: client.scoped({
      // Unlike the context's `signal`, this signal does not abort when the program is asked to stop, so that the result
      // of an operation outside the cluster can still be stored.
      signal: fence.signal,
      assertLeader,
      onWrite: (write) => {
        onWrite?.(write);
        caches.onWrite(write);
      },
    }),
    assertLeader,
    now: () => world.now(),
    cache: (kind) => {
      if (declared.has(resourceOf(kind))) return caches.get(kind);
      throw new Error(`the cache of ${resourceOf(kind)} is read but not declared; add the kind to \`reads\``);
    },
  };
  return Object.assign(new LazyLog(log), rest);
}

/**
 * Base of a context. Its `log` is created on first use. All contexts share one getter for `log`: if each context had
 * its own getter, V8 would store every context as a hash table of more than a kilobyte.
 */
class LazyLog {
  static readonly #property: PropertyDescriptor & ThisType<LazyLog> = {
    enumerable: true,
    get() {
      return this.#create();
    },
  };
  declare readonly log: Logger;
  readonly #create: () => Logger;

  constructor(create: () => Logger) {
    this.#create = create;
    Object.defineProperty(this, 'log', LazyLog.#property);
  }
}

/** Creates the caches of the kinds, so that the manager syncs them before it starts controllers. */
export function declareCaches(caches: Caches, kinds: Iterable<Kind>): ReadonlySet<string> {
  const declared = new Set<string>();
  for (const kind of kinds) {
    caches.get(kind);
    declared.add(resourceOf(kind));
  }
  return declared;
}
