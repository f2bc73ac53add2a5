import type { ExternalResources } from './external-resources.ts';

/** Input of `removeOrphan`. */
export interface RemoveOrphanOptions<T> {
  readonly item: T;
  readonly external: Pick<ExternalResources<T>, 'refetch' | 'remove'>;
  /** Returns whether the resource, as it is now, may be deleted: it has no owner, and no user took it over. */
  readonly isRemovable: (newest: T) => boolean;
  readonly signal: AbortSignal;
  /** Throws once this process may not act any more. */
  readonly assertLeader: () => void;
}

/**
 * Deletes an external resource without an owner. Reads it again first: since it was listed, a user may have asked to orphan
 * it, which removes its labels, or may have taken it over.
 * @returns the resource as it was deleted; undefined if it was kept
 */
export async function removeOrphan<T>(options: RemoveOrphanOptions<T>): Promise<T | undefined> {
  const { item, external, isRemovable, signal, assertLeader } = options;
  const newest = await external.refetch(item, signal);
  if (newest === undefined || !isRemovable(newest)) return undefined;
  await external.remove(newest, { signal, assertLeader });
  return newest;
}
