import type { CdiConfig, PersistentVolumeClaim } from './kinds.ts';

const MIB = 2 ** 20;

/**
 * Returns the fraction of a claim that CDI reserves for the file system. A disk on a file system is a file, so the
 * claim has to be larger than the disk. The fraction is 0 for block volumes, or if CDI reports no valid fraction.
 */
export function filesystemOverhead({ spec }: PersistentVolumeClaim, config: CdiConfig | undefined): number {
  if (spec?.volumeMode === 'Block') return 0;
  const { global, storageClass = {} } = config?.status?.filesystemOverhead ?? {};
  const overhead = Number(storageClass[spec?.storageClassName ?? ''] ?? global ?? 0);
  return overhead > 0 && overhead < 1 ? overhead : 0;
}

/** Returns the size of the claim that a disk of this size needs, calculated as in CDI. Both sizes are in bytes. */
export function requiredSpace(bytes: number, overhead: number): number {
  return overhead === 0 ? bytes : Math.ceil((Math.ceil(bytes / MIB) * MIB) / (1 - overhead));
}
