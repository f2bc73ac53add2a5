import type { Client } from '@vmwright/runtime';
import { type EntryStore, entryStore } from '../ledger/entry-store.ts';
import { VMDiskImage } from './resource.ts';

/** ConfigMap in the operator's namespace that lists the images that hold a sync slot: UID → `namespace/name`. */
export const SLOTS_NAME = 'vmwright-image-syncs';

/**
 * Returns access to the sync slots that are stored in a namespace.
 * @param client client of a reconcile; its writes fail after the replica has lost leadership
 */
export function slotStore(client: Client, namespace: string): EntryStore {
  return entryStore(client, { namespace, name: SLOTS_NAME }, VMDiskImage);
}
