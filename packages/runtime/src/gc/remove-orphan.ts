import type { ExternalChange, ExternalResources } from './external-resources.ts';

/** Input of `removeOrphan`. */
export interface RemoveOrphanOptions<T> {
  readonly item: T;
  readonly external: Pick<ExternalResources<T>, 'refetch' | 'remove'>;
  /** Returns whether the resource, as it is now, may be deleted: it has no owner, and no user took it over. */
  readonly isRemovable: (newest: T) => boolean;
  readonly signal: AbortSignal;
  /** Throws once this process may no longer act. */
  readonly assertLeader: () => void;
  /** Called with each change as soon as the backend has accepted it. */
  readonly onChange: (newest: T, change: ExternalChange) => void;
}

/**
 * Deletes an external resource without an owner. Reads the resource again first. Since it was listed, a user may have
 * taken it over, or it may have lost its labels because a user asked to orphan it.
 * @returns whether this call deleted the resource; false if it was kept or already gone
 */
export async function removeOrphan<T>(options: RemoveOrphanOptions<T>): Promise<boolean> {
  const { item, external, isRemovable, signal, assertLeader, onChange } = options;
  const newest = await external.refetch(item, signal);
  if (newest === undefined || !isRemovable(newest)) return false;
  let isDeleted = false;
  await external.remove(newest, {
    signal,
    assertLeader,
    onChange: (change) => {
      isDeleted ||= change.type === 'delete';
      onChange(newest, change);
    },
  });
  return isDeleted;
}
