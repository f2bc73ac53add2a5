import type { ObjectCache } from '../cache/cache.ts';
import type { Client } from '../client/client.ts';
import type { Happening } from '../events/recorder.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { Logger } from '../log/logger.ts';

/** What a reconcile has at hand. */
export interface ReconcileContext<T extends KubeObject> {
  /** `namespace/name`. */
  readonly key: string;
  /** Aborts when the reconcile takes too long, the program stops, or another leads or is to have the object. */
  readonly signal: AbortSignal;
  /**
   * Its writes are visible in the caches at once, do not wake this object again where they say which version they
   * replace, and are refused once another may act on this object.
   */
  readonly client: Client;
  /**
   * Throws when another may act on this object by now. The client asks by itself; whoever calls the outside asks right
   * before: after a pause of the whole process the signal may be late.
   */
  assertMayAct(): void;
  readonly log: Logger;
  /** Milliseconds since 1970. */
  now(): number;
  cache<O extends KubeObject>(kind: Kind<O>): ObjectCache<O>;
  /**
   * Makes this the object's status: sends what differs, and nothing where nothing does, on condition that nobody has
   * changed the object meanwhile (else ConflictError, upon which the object comes again).
   * @returns the object as it is then
   */
  setStatus(object: T, status: StatusOf<T>): Promise<T>;
  /** Tells people what has happened to the object, by an event; see `EventRecorder`. */
  event(object: T, happening: Happening): void;
}

type StatusOf<T> = T extends { readonly status?: infer S } ? NonNullable<S> : never;
