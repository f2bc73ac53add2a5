import type { CacheEvent } from '../cache/cache-event.ts';
import type { KubeObject } from '../kind/object.ts';

/** Returns whether a change causes a reconcile. */
export type Predicate<T extends KubeObject = KubeObject> = (event: CacheEvent<T>) => boolean;

/** Matches changes of the spec, and objects that are added, removed or marked for deletion. */
export const generationChanged: Predicate = (event) =>
  changed(event, ({ metadata }) => [metadata.generation, metadata.deletionTimestamp]);

/** Matches changes of the labels, and added or removed objects. */
export const labelsChanged: Predicate = (event) => changed(event, ({ metadata }) => metadata.labels);

/** Matches changes of the annotations, and added or removed objects. */
export const annotationsChanged: Predicate = (event) =>
  changed(event, ({ metadata }) => metadata.annotations);

/**
 * Matches changes of the status, and added or removed objects. Status writes of the controller's own reconcile do not
 * enqueue the object (see `Controller`), so this predicate reacts only to edits by other programs and users.
 */
export const statusChanged: Predicate = (event) =>
  changed(event, (object) => ('status' in object ? object.status : undefined));

/** Matches if at least one of the predicates matches. */
export function any<T extends KubeObject>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (event) => predicates.some((predicate) => predicate(event));
}

function changed(event: CacheEvent<KubeObject>, part: (object: KubeObject) => unknown): boolean {
  const { before } = event;
  if (event.type !== 'changed' || before === undefined) return true;
  // Another UID means that the object was deleted and created again while the watch was interrupted: it counts as
  // changed even if all other fields are the same.
  if (before.metadata.uid !== event.object.metadata.uid) return true;
  return JSON.stringify(part(before)) !== JSON.stringify(part(event.object));
}
