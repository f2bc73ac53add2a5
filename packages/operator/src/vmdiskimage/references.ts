import { type Caches, keyOf } from '@vmwright/runtime';
import { DataVolume } from '../kubevirt/kinds.ts';
import { controllerOf } from '../kubevirt/ownership.ts';
import { IMAGE_INDEX, indexByImage } from '../virtualmachine/image-ref.ts';
import { VirtualMachine } from '../virtualmachine/resource.ts';
import { clonedPrefix, prefixKey } from './identity.ts';
import type { VMDiskImage } from './resource.ts';

/** Index of DataVolumes by the `prefixKey` of the image whose snapshot or claim they clone. */
const CLONES_BY_IMAGE = 'cloned-vmdiskimage';

/** Objects that use an image. */
export interface Users {
  /** VirtualMachines that name the image, also while they are terminating. */
  readonly machines: readonly VirtualMachine[];
  /** DataVolumes that clone a snapshot or the claim of the image, whoever created them. */
  readonly clones: readonly DataVolume[];
}

/** References to an image. */
export interface References {
  readonly count: number;
  /** Kind and key of each referrer, sorted: `VirtualMachine ns/name`. */
  readonly referrers: readonly string[];
}

/** Adds the indexes that `usersOf` reads. May be called more than once. */
export function indexUsers(caches: Caches): void {
  indexByImage(caches.get(VirtualMachine));
  caches.get(DataVolume).addIndex(CLONES_BY_IMAGE, (volume) => {
    const prefix = clonedPrefix(volume);
    return prefix === undefined ? [] : [prefix];
  });
}

/** Returns the cached objects that use an image. */
export function usersOf(image: VMDiskImage, caches: Caches): Users {
  return {
    machines: [...caches.get(VirtualMachine).byIndex(IMAGE_INDEX, keyOf(image.metadata))],
    clones: [...caches.get(DataVolume).byIndex(CLONES_BY_IMAGE, prefixKey(image))],
  };
}

/** Whether the caches that `usersOf` reads are complete. */
export function hasSyncedUsers(caches: Caches): boolean {
  return caches.get(VirtualMachine).hasSynced && caches.get(DataVolume).hasSynced;
}

/**
 * Reads all VirtualMachines and DataVolumes from etcd into the caches, so that `usersOf` returns every user that existed when
 * this was called, also if a watch is late.
 * @returns namespaces that cannot be listed, whose objects may be missing
 */
export async function refreshUsers(caches: Caches, signal: AbortSignal): Promise<readonly string[]> {
  const read = [caches.get(VirtualMachine), caches.get(DataVolume)] as const;
  await Promise.all(read.map((cache) => cache.refresh(signal)));
  return [...new Set(read.flatMap(({ unlistable }) => unlistable))].toSorted();
}

/**
 * Counts the references to an image. The root disk of a VirtualMachine that is counted itself does not count: a machine
 * would count twice.
 */
export function countReferences({ machines, clones }: Users): References {
  const counted = new Set(machines.map(({ metadata }) => metadata.uid));
  const referrers = [
    ...machines.map(({ metadata }) => `VirtualMachine ${keyOf(metadata)}`),
    ...clones
      .filter((volume) => !counted.has(machineUid(volume)))
      .map(({ metadata }) => `DataVolume ${keyOf(metadata)}`),
  ];
  return { count: referrers.length, referrers: referrers.toSorted() };
}

/** Returns the UID of the VirtualMachine that owns a DataVolume; the empty string if none does. */
export function machineUid(volume: DataVolume): string {
  const owner = controllerOf(volume);
  if (owner?.kind !== VirtualMachine.kind) return '';
  return owner.apiVersion.startsWith(`${VirtualMachine.group}/`) ? owner.uid : '';
}

/** Returns a sentence part that names the first referrers: `VirtualMachine a/b, … and 3 more`. */
export function listReferrers({ count, referrers }: References, most: number): string {
  const named = referrers.slice(0, most).join(', ');
  return count > most ? `${named} and ${count - most} more` : named;
}
