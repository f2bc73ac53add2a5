import type { ObjectMeta } from '@vmwright/runtime';

/** Metadata that `leanMetadata` keeps only if the caller passes it. */
type KeptMetadata = Partial<Pick<ObjectMeta, 'labels' | 'annotations' | 'ownerReferences'>>;

/** Returns the metadata to cache: names, UID, resourceVersion and times of the object, and the fields in `kept`. */
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

/** Filters the entries of a record by key. Returns undefined if `isKept` accepts none of the keys. */
export function pick<T>(
  record: Readonly<Record<string, T>> | undefined,
  isKept: (key: string) => boolean,
): Readonly<Record<string, T>> | undefined {
  const kept = Object.entries(record ?? {}).filter(([key]) => isKept(key));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
