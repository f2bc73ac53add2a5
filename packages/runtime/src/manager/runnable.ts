import { messageOf } from '@vmwright/core';
import type { WorkContext } from '../controller/context.ts';
import { declareCaches, type WorkEnvironment, workContext } from '../controller/work.ts';
import type { EventInput, EventRecorder } from '../events/recorder.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { ShardOwnership } from '../sharding/options.ts';

/** Context of a runnable. */
export interface RunnableContext extends WorkContext {
  /**
   * Keys that this replica may act on, if the work is sharded. Undefined without sharding: the replica may then act on
   * all keys.
   */
  readonly shards: ShardOwnership | undefined;
  /**
   * Whether no other replica has led since the caches of this replica began to list their objects. If so, the caches
   * contain everything that earlier leaders acted on. False if that is not known. Always false without the election
   * option `observesFirst`.
   */
  readonly hasFreshCaches: boolean;
  /** Records a Kubernetes event about an object, which does not have to exist; see `EventRecorder`. */
  event(kind: Kind, object: KubeObject, input: EventInput): void;
}

export interface RunnableOptions {
  /** Name in logs and events. */
  readonly name: string;
  /** Kinds that the runnable reads from the cache. */
  readonly reads?: readonly Kind[];
  /** Runs until the context's signal aborts. An error or an earlier return ends the manager. */
  readonly run: (context: RunnableContext) => Promise<void>;
}

/** Dependencies of a runnable. */
export interface RunnableEnvironment extends WorkEnvironment {
  readonly events: Pick<EventRecorder, 'record'>;
}

/**
 * Long-running work that neither reconciles single objects nor runs periodically, such as a consumer that writes
 * changes of a cache to another system in batches.
 *
 * Guarantees: with leader election, the work runs only on the leader, once per leadership term, with the fence of that
 * term. With sharding, the work runs on every member and must check `shards` for each key. The context's fence then
 * covers only the shard of cluster-scoped objects, so the work must use `shards.fence(key)` instead.
 */
export class Runnable {
  readonly #options: RunnableOptions;
  readonly #environment: RunnableEnvironment;
  readonly #declared: ReadonlySet<string>;

  constructor(options: RunnableOptions, environment: RunnableEnvironment) {
    this.#options = options;
    this.#environment = environment;
    this.#declared = declareCaches(environment.caches, options.reads ?? []);
  }

  /** Runs the work of one term. @throws if the work fails or returns before the signal aborts */
  async run(signal: AbortSignal): Promise<void> {
    const { log, events, share, hasFreshCaches = () => false } = this.#environment;
    const { name, run } = this.#options;
    const runnableLog = log.child({ runnable: name });
    const context = workContext(this.#environment, this.#declared, {
      key: name,
      signal,
      log: () => runnableLog,
    });
    const event: RunnableContext['event'] = (kind, object, input) =>
      events.record(kind, object, input, share === undefined ? context.client : undefined);
    try {
      await run(Object.assign(context, { event, shards: share, hasFreshCaches: hasFreshCaches() }));
    } catch (error) {
      if (!signal.aborted) throw new Error(`${name} failed: ${messageOf(error)}`, { cause: error });
    }
    if (!signal.aborted) throw new Error(`${name} ended although it was not asked to stop`);
  }
}
