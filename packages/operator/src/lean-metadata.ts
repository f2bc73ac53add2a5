import type { ObjectMeta } from '@vmwright/runtime';

/** Metadata that a cache transform keeps beside the names, the versions and the times. */
type KeptMetadata = Partial<Pick<ObjectMeta, 'labels' | 'annotations' | 'ownerReferences'>>;

/** Reduces metadata to what identifies an object and its version, before the object is cached. */
export function leanMetadata(
  { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp }: ObjectMeta,
  kept: KeptMetadata = {},
): ObjectMeta {
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...kept,
  };
}

/** Returns the entries of a record that have these keys; undefined if there are none. */
export function pick<T>(
  record: Readonly<Record<string, T>> | undefined,
  isKept: (key: string) => boolean,
): Readonly<Record<string, T>> | undefined {
  const kept = Object.entries(record ?? {}).filter(([key]) => isKept(key));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
