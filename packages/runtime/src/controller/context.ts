import type { Fence, Logger } from '@vmwright/core';
import type { ObjectCache } from '../cache/cache.ts';
import type { Client } from '../client/client.ts';
import type { EventInput } from '../events/recorder.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';

/** What any piece of work has at hand: a reconcile, or a run of a job. */
export interface WorkContext {
  /** Aborts when the work takes too long, the program stops, or another leads or is to have it. */
  readonly signal: AbortSignal;
  /**
   * Its writes are visible in the caches at once, and are refused once the `fence` is closed. In a reconcile they do not
   * wake the object again where they say which version they replace. Its calls end when the fence closes, and not
   * yet when the program stops: what was done outside can still be written down.
   */
  readonly client: Client;
  /**
   * Open for as long as this replica leads without interruption (with sharding: owns the object), and closed for ever
   * after, also when the same replica leads again. It outlives the work: an operation that goes on after its reconcile
   * has ended takes a fence of its own from it (`fence.nested()`), and ends with the signal of that.
   */
  readonly fence: Fence;
  /**
   * Throws when the fence is closed. The client asks by itself; code that changes anything else asks right before it
   * sends the request: after a pause of the whole process the signal may be late.
   */
  assertLeader(): void;
  readonly log: Logger;
  /** Milliseconds since 1970. */
  now(): number;
  /**
   * The cache of a kind that is declared: in `for`, `owns`, `watches` or `reads`. Those are complete before anything
   * begins; one that fills when first asked for would say that there is nothing.
   */
  cache<O extends KubeObject>(kind: Kind<O>): ObjectCache<O>;
}

/** What a reconcile has at hand. */
export interface ReconcileContext<T extends KubeObject> extends WorkContext {
  /** `namespace/name`. */
  readonly key: string;
  /**
   * Makes this the object's status: sends what differs, and nothing where nothing does, on condition that nobody has
   * changed the object meanwhile (else ConflictError, upon which the object comes again).
   * @returns the object as it is then
   */
  setStatus(object: T, status: StatusOf<T>): Promise<T>;
  /** Tells people what has happened to the object, by an event; see `EventRecorder`. */
  event(object: T, happening: EventInput): void;
}

type StatusOf<T> = T extends { readonly status?: infer S } ? NonNullable<S> : never;
