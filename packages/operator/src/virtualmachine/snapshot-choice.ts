import type { VMDiskImage } from '../vmdiskimage/resource.ts';

/** Number of clones that the caches show for each snapshot, by the name of the snapshot. */
export type CloneCounts = ReadonlyMap<string, number>;

/** Whether the status of the image lists a snapshot. Disks are cloned only from listed snapshots. */
export function hasSnapshot({ status }: VMDiskImage, name: string): boolean {
  return status?.snapshots?.some((snapshot) => snapshot.name === name) ?? false;
}

/**
 * Returns the newest snapshot of the image for which `maxClones` allows another clone; undefined if there is none. Both
 * `counts` and the status of the image have a number of clones per snapshot. The number in the status may be outdated,
 * but includes clones through a DataSource. So the larger of the two numbers is compared with `maxClones`.
 */
export function chooseSnapshot({ spec, status }: VMDiskImage, counts: CloneCounts): string | undefined {
  const { maxClones = Number.POSITIVE_INFINITY } = spec;
  return status?.snapshots?.findLast(
    ({ name, clones }) => Math.max(clones, counts.get(name) ?? 0) < maxClones,
  )?.name;
}
