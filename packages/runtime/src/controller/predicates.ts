import type { CacheEvent } from '../cache/cache.ts';
import type { KubeObject } from '../kind/object.ts';

/** Whether a change is worth a reconcile. */
export type Predicate<T extends KubeObject = KubeObject> = (event: CacheEvent<T>) => boolean;

/** The spec has changed (or the object is new, gone, or being deleted); not its status, labels or annotations. */
export const generationChanged: Predicate = (event) =>
  changed(event, ({ metadata }) => [metadata.generation, metadata.deletionTimestamp]);

export const labelsChanged: Predicate = (event) => changed(event, ({ metadata }) => metadata.labels);

export const annotationsChanged: Predicate = (event) =>
  changed(event, ({ metadata }) => metadata.annotations);

/**
 * The status has changed. Status writes of the controller's own reconcile do not enqueue the object (see `Controller`),
 * so what remains are edits by other programs and people, which the next reconcile restores.
 */
export const statusChanged: Predicate = (event) =>
  changed(event, (object) => ('status' in object ? object.status : undefined));

/** One of them says so. */
export function any<T extends KubeObject>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (event) => predicates.some((predicate) => predicate(event));
}

function changed(event: CacheEvent<KubeObject>, part: (object: KubeObject) => unknown): boolean {
  const { before } = event;
  if (event.type !== 'changed' || before === undefined) return true;
  // Deleted and created anew while the watch was away: another object, though it may look alike.
  if (before.metadata.uid !== event.object.metadata.uid) return true;
  return JSON.stringify(part(before)) !== JSON.stringify(part(event.object));
}
