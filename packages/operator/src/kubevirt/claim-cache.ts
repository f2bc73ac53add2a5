import type { Caches } from '@vmwright/runtime';
import { CDI_LABEL, PersistentVolumeClaim } from './kinds.ts';

const CONFIGURED = new WeakSet<Caches>();

/**
 * Limits the cache of PersistentVolumeClaims to those of DataVolumes. May be called more than once: several controllers read
 * these claims, and a cache accepts its options only once.
 */
export function configureClaimCache(caches: Caches): void {
  if (CONFIGURED.has(caches)) return;
  CONFIGURED.add(caches);
  caches.get(PersistentVolumeClaim, { labelSelector: `app=${CDI_LABEL.app}` });
}
