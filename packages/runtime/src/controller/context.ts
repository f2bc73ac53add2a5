import type { Fence, Logger } from '@vmwright/core';
import type { ObjectCache } from '../cache/cache.ts';
import type { Client } from '../client/client.ts';
import type { EventInput } from '../events/recorder.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';

/** Context of a reconcile or of a job's run. */
export interface WorkContext {
  /**
   * Aborts on timeout, when the program stops, when leadership is lost, or when another replica gets the object's
   * shard.
   */
  readonly signal: AbortSignal;
  /**
   * Client for reads and writes. Its writes are visible in the caches immediately, and fail once `fence` is closed. In
   * a reconcile, a write that carries the resource version that it replaces does not enqueue the object again. Calls
   * are aborted when the fence closes. They are not aborted when the program stops, so that the result of an operation
   * outside the cluster can still be stored.
   */
  readonly client: Client;
  /**
   * Fence of the work. It is open while this replica leads without interruption (with sharding: owns the object). Once
   * closed, it stays closed, even if the same replica leads again. The fence outlives the reconcile. An operation that
   * continues after its reconcile creates a fence of its own (`fence.nested()`), and ends when the signal of that fence
   * aborts.
   */
  readonly fence: Fence;
  /**
   * Throws if the fence is closed. The client calls it before each write. Code that writes to other systems must call
   * it right before each request, because `signal` may abort too late after a pause of the whole process.
   */
  assertLeader(): void;
  readonly log: Logger;
  /** Milliseconds since 1970. */
  now(): number;
  /**
   * Returns the cache of a kind that is declared in `for`, `owns`, `watches` or `reads`. These caches are synced before
   * the first reconcile.
   * @throws Error if the kind is not declared, because its cache might not be synced
   */
  cache<O extends KubeObject>(kind: Kind<O>): ObjectCache<O>;
}

/** Context of a reconcile. */
export interface ReconcileContext<T extends KubeObject> extends WorkContext {
  /** Key of the object: `namespace/name`. */
  readonly key: string;
  /**
   * Sets the object's status. Sends only the difference, and nothing if there is none.
   * @returns the updated object
   * @throws ConflictError if the object has changed since it was read; the controller then reconciles it again
   */
  setStatus(object: T, status: StatusOf<T>): Promise<T>;
  /** Records a Kubernetes event about the object; see `EventRecorder`. */
  event(object: T, input: EventInput): void;
}

/** Type of an object's status. */
export type StatusOf<T> = T extends { readonly status?: infer S } ? NonNullable<S> : never;
